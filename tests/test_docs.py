"""The documentation is true: what it links to exists, its tables say what the code says, its commands work.

Examples are run as they stand in the pages, except that the address of the test's own node takes the place of
`127.0.0.1:9092`.
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
TRIED = [README, ROOT / "docs/guides/getting-started.md", ROOT / "docs/guides/clients.md"]
ADDRESS = "127.0.0.1:9092"
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


EXAMPLES = [example for page in TRIED for example in _examples(page)]
PROGRAMS = [example for example in EXAMPLES if example.language == "python"]
COMMANDS = [
    pytest.param(command, id=f"{example.page}: {command}")
    for example in EXAMPLES
    if example.language == "sh"
    for command in _commands(example)
]


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
    """What `./run` alone started, and where it said to find it."""

    process: subprocess.Popen[str]
    bootstrap: str
    printed: str


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    data = tmp_path_factory.mktemp("data")
    process = _start("./run", {"ROPEWALK_NODE__DATA": str(data)})
    printed, bootstrap = _read_until_ready(process)
    yield Served(process, bootstrap, printed)
    assert _stop(process) == 0


def _start(command: str, environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["sh", "-c", f"exec {command}"],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
    )


def _read_until_ready(process: subprocess.Popen[str]) -> tuple[str, str]:
    assert process.stdout is not None
    printed = ""
    for line in process.stdout:
        printed += line
        if ready := re.search(r"ropewalk ready .*kafka=(\S+)", line):
            return printed, ready[1]
    raise AssertionError(f"it ended before it was ready:\n{printed}")


def _stop(process: subprocess.Popen[str]) -> int:
    process.send_signal(signal.SIGTERM)
    assert process.stdout is not None
    process.stdout.read()
    return process.wait(PATIENCE_S)


@pytest.mark.compat
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_works(command: str, served: Served) -> None:
    if command == "./run":
        assert served.process.poll() is None  # it is what everything else here talks to
    elif command.startswith("./run up"):
        process = _start(command, {})
        _read_until_ready(process)
        assert _stop(process) == 0
    elif command == "./test":
        _succeed("./test --help", served)  # it is what runs this test
    else:
        _succeed(command, served)


def _succeed(command: str, served: Served) -> None:
    environment = {**os.environ, "ROPEWALK_BOOTSTRAP": served.bootstrap}
    command = command.replace(ADDRESS, served.bootstrap)
    done = subprocess.run(
        command, shell=True, cwd=ROOT, env=environment, capture_output=True, timeout=PATIENCE_S, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.compat
@pytest.mark.parametrize("example", PROGRAMS, ids=lambda example: f"{example.page} {PROGRAMS.index(example)}")
def test_every_program_prints_what_it_wrote(example: Example, served: Served) -> None:
    program = example.text.replace(ADDRESS, served.bootstrap)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=PATIENCE_S, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "b'hello'\n"


@pytest.mark.compat
def test_run_shows_a_record_going_in_and_coming_out(served: Served) -> None:
    assert "demo" in served.printed
