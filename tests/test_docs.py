"""The documentation is true: what it links to exists, its tables say what the code says, its commands work.

Examples are run as they stand in the pages, except that the address of the test's own node takes the place of
`127.0.0.1:9092`, and that of its SQS door the place of `127.0.0.1:9324`.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tools import write_reference

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
README = ROOT / "README.md"
TRIED = [
    README,
    *(
        ROOT / "docs/guides" / page
        for page in (
            "getting-started.md",
            "clients.md",
            "consumer-groups.md",
            "python-client.md",
            "queues.md",
            "from-elasticmq-localstack-sqs.md",
            "celery.md",
        )
    ),
]
ADDRESS = "127.0.0.1:9092"
SQS_ADDRESS = "127.0.0.1:9324"
READY = r"ropewalk ready .*?kafka=(\S+).*?sqs=http://(\S+)"
PATIENCE_S = 60


class Example(NamedTuple):
    page: str
    language: str
    text: str


def _examples(page: Path) -> Iterator[Example]:
    for match in re.finditer(r"^```(\w+)\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE):
        yield Example(page.name, match[1], match[2])


def _commands(example: Example) -> Iterator[str]:
    """The lines of a shell example without their comments."""
    for line in example.text.splitlines():
        command = re.split(r"\s+#\s", line)[0].strip()
        if command:
            yield command


def _in_order() -> Iterator[object]:
    """Every command and program of the pages, in the order in which a reader would try them."""
    for page in TRIED:
        for example in _examples(page):
            if example.language == "sh":
                for command in _commands(example):
                    yield pytest.param("sh", command, id=f"{page.name}: {command}")
            elif example.language == "python":
                yield pytest.param("python", example.text, id=f"{page.name}: {example.text.splitlines()[0]}")


def _ids(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=_ids)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", sorted(write_reference.PAGES.glob("*.md")), ids=_ids)
def test_reference_tables_say_what_the_code_says(page: Path) -> None:
    text = page.read_text()
    assert write_reference.rewritten(text) == text, "run tools/write_reference.py"


def test_every_table_has_a_place() -> None:
    pages = write_reference.PAGES.glob("*.md")
    assert set[str]().union(*(write_reference.table_names(page.read_text()) for page in pages)) == set(
        write_reference.TABLES
    )


def test_the_readme_fits_a_screen() -> None:
    assert len(README.read_text().splitlines()) <= 50


def test_every_decision_is_listed_and_has_its_three_parts() -> None:
    listing = (ROOT / "docs/adr/README.md").read_text()
    for page in sorted((ROOT / "docs/adr").glob("0*.md")):
        assert f"({page.name})" in listing
        assert re.findall(r"^## (.+)$", page.read_text(), re.MULTILINE) == [
            "Context",
            "Decision",
            "Consequences",
        ]


class Served(NamedTuple):
    """What `./run` alone started, where it said to find it, and what it showed."""

    process: subprocess.Popen[str]
    bootstrap: str
    sqs: str
    shown: str


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    data = tmp_path_factory.mktemp("data")
    process = _start("./run", {"ROPEWALK_NODE__DATA": str(data)})
    ready = _read_until(process, READY)
    yield Served(process, ready[1], ready[2], _read_until(process, "Ctrl-C").string)
    assert _stop(process) == 0


def _start(command: str, environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["sh", "-c", f"exec {command}"],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
    )


def _read_until(process: subprocess.Popen[str], pattern: str) -> re.Match[str]:
    """The first match in what the process prints from here on; its `string` is everything up to that line."""
    assert process.stdout is not None
    printed = ""
    for line in process.stdout:
        printed += line
        if match := re.search(pattern, printed):
            return match
    raise AssertionError(f"it ended before it printed {pattern!r}:\n{printed}")


def _stop(process: subprocess.Popen[str]) -> int:
    process.send_signal(signal.SIGTERM)
    assert process.stdout is not None
    process.stdout.read()
    return process.wait(PATIENCE_S)


def _promised(program: str) -> str:
    """What a program prints: what stands behind its calls of `print`, or the usual greeting."""
    lines = re.findall(r"^ *print\(.*\)  # (.*)$", program, re.MULTILINE)
    return "".join(f"{line}\n" for line in lines or ["b'hello'"])


@pytest.mark.compat
@pytest.mark.parametrize(("language", "text"), list(_in_order()))
def test_every_example_works(language: str, text: str, served: Served, tmp_path: Path) -> None:
    if language == "python" and "def test_" in text:
        program = tmp_path / "test_example.py"
        program.write_text(text)
        _succeed([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(program)], served)
    elif language == "python":
        assert _succeed([sys.executable, "-c", text], served) == _promised(text)
    elif text == "./run":
        assert served.process.poll() is None  # it is what everything else here talks to
    elif text.startswith("./run up"):
        process = _start(text, {})
        _read_until(process, READY)
        assert _stop(process) == 0
    elif text == "./test":
        _succeed(["./test", "--help"], served)  # it is what runs this test
    else:
        _succeed(["sh", "-c", text], served)


def _succeed(command: list[str], served: Served) -> str:
    """Runs it against the node of `./run`; answers with what it printed."""
    done = subprocess.run(
        [word.replace(ADDRESS, served.bootstrap).replace(SQS_ADDRESS, served.sqs) for word in command],
        cwd=ROOT,
        env={**os.environ, "ROPEWALK_BOOTSTRAP": served.bootstrap},
        capture_output=True,
        timeout=PATIENCE_S,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.compat
def test_run_shows_records_going_in_and_coming_out_and_what_to_try_next(served: Served) -> None:
    assert re.search(r"produced .* demo-0", served.shown)
    assert re.search(r"consumed +offset \d+: ", served.shown)
    assert f"kcat -b {served.bootstrap}" in served.shown
    assert re.search(r"received +from queue demo-jobs: ", served.shown)
    assert f"aws --endpoint-url http://{served.sqs} sqs list-queues" in served.shown
