"""The code is kept as CONTRIBUTING says: each rule is held by the tree as it is, and refuses a tree that breaks it."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SENTENCE_MAX = 160
FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 80

LONGER = {
    "base/limits.py": "one list of bounds, each with its reason, is found more easily than ten",
    "broker/partitions/partitions.py": "opening, following and closing share one table of what is held",
    "cli/consume.py:consume": "the options of a command are its parameters",
    "cli/pipeline.py:run": "the options of a command are its parameters",
    "kafka/apis.py:serve": "one table: an API to a line",
    "metadata/image.py": "one place where records take effect, a case to each",
    "node/build.py:build": "a node is put together by hand, from top to bottom",
    "node/place.py:find_place": "one decision after the other, each with what is said where it fails",
    "records/unpacking.py:unpack": "a loop over bytes that calls nothing, since it runs for every record",
}
"""What may be longer, and why. One that is short again has no business here."""

BANNED = re.compile(r"(Manager|Helper|Utils?|Service|Processor|Impl|Info)$|^_?(Base|Abstract)[A-Z]")
BANNED_FILES = {"utils", "util", "common", "helpers", "helper", "misc", "core_utils"}
ALLOWED_NAMES = {"ServiceManager"}
"""systemd calls itself so."""

FOR_OTHERS = {"aio.py"}
"""What those who use the package import."""

PATH = re.compile(r"`((?:[\w.-]+/)*[\w-]+\.(?:py|md|toml|patch|txt))`")


def modules(root: Path) -> Iterator[tuple[str, Path, ast.Module]]:
    """Each with its path below the package."""
    package = root / "src" / "ropewalk"
    for path in sorted(package.rglob("*.py")):
        yield str(path.relative_to(package)), path, ast.parse(path.read_text())


def first_sentences(root: Path) -> list[str]:
    found = []
    for name, _, tree in modules(root):
        text = " ".join((ast.get_docstring(tree) or "").split())
        sentence = re.split(r"(?<=[.:])\s", text, maxsplit=1)[0]
        if not text:
            found.append(f"{name} does not say what it is for")
        elif len(sentence) > SENTENCE_MAX:
            found.append(f"{name} takes {len(sentence)} characters to say what it is for")
    return found


def sizes(root: Path) -> list[str]:
    lines = {}
    for name, path, tree in modules(root):
        lines[name] = len(path.read_text().splitlines())
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                count = (node.end_lineno or 0) - node.lineno + 1
                lines[f"{name}:{node.name}"] = max(count, lines.get(f"{name}:{node.name}", 0))
    longer = {
        name: count
        for name, count in lines.items()
        if count > (FUNCTION_LINES_MAX if ":" in name else FILE_LINES_MAX)
    }
    return [f"{name} has {count} lines" for name, count in longer.items() if name not in LONGER]


def names(root: Path) -> list[str]:
    found = []
    for name, path, tree in modules(root):
        if path.stem in BANNED_FILES:
            found.append(f"{name} is a room for leftovers")
        classes = [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        if not name.startswith("wire/"):  # messages have Kafka's own names
            found += [
                f"{name}: {each}" for each in classes if BANNED.search(each) and each not in ALLOWED_NAMES
            ]
    return found


def orphans(root: Path) -> list[str]:
    """Modules that nobody names: in an import, in a table of what is imported when it is asked for, or as a command."""
    project = root / "pyproject.toml"
    named: set[str] = set(re.findall(r"ropewalk[\w.]*", project.read_text() if project.exists() else ""))
    for _, _, tree in modules(root):
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                named |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                named.add(node.value.partition(":")[0])
    found = []
    for name, path, _ in modules(root):
        module = ".".join(("ropewalk", *Path(name).with_suffix("").parts))
        is_begun_elsewhere = path.name in ("__init__.py", "__main__.py") or name in FOR_OTHERS
        if not is_begun_elsewhere and module not in named:
            found.append(f"{name} is imported by nobody")
    return found


def named_files(root: Path) -> list[str]:
    """Pages on how the code is laid out, and docstrings, name files that are there."""
    tracked = {
        str(path.relative_to(root))
        for folder in ("src", "tests", "docs", "tools", "bench", "examples")
        for path in (root / folder).rglob("*.*")
    }
    texts: list[tuple[str, str]] = [
        (str(page.relative_to(root)), page.read_text())
        for pattern in ("ARCHITECTURE.md", "CONTRIBUTING.md", "docs/adr/*.md", "docs/internals/*.md")
        for page in sorted(root.glob(pattern))
    ]
    texts += [
        (name, ast.get_docstring(node) or "")
        for name, _, tree in modules(root)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return [
        f"{where} names {path}"
        for where, text in texts
        for path in PATH.findall(text)
        if Path(path).stem != "NAME"  # of what is to be added
        and not (root / path).exists()
        and not any(known.endswith(f"/{path}") for known in tracked)
    ]


def rooms(root: Path) -> list[str]:
    """Every folder of the package is in the table of rooms."""
    table = (root / "ARCHITECTURE.md").read_text()
    folders = {Path(name).parts[0] for name, _, _ in modules(root) if "/" in name}
    return [f"{folder} is in no table" for folder in sorted(folders) if f"`{folder}`" not in table]


RULES: list[Callable[[Path], list[str]]] = [first_sentences, sizes, names, orphans, named_files, rooms]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_tree_keeps(rule: Callable[[Path], list[str]]) -> None:
    assert rule(ROOT) == []


def test_what_may_be_longer_still_is() -> None:
    missing = []
    for name in LONGER:
        path, _, function = name.partition(":")
        text = (ROOT / "src" / "ropewalk" / path).read_text()
        counts = [
            (node.end_lineno or 0) - node.lineno + 1
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == function
        ]
        lines, lines_max = (
            (max(counts), FUNCTION_LINES_MAX) if function else (len(text.splitlines()), FILE_LINES_MAX)
        )
        if lines <= lines_max:
            missing.append(name)
    assert missing == []


@pytest.mark.parametrize(
    ("rule", "name", "text", "found"),
    [
        pytest.param(first_sentences, "room/a.py", "x = 1\n", "does not say", id="no docstring"),
        pytest.param(
            first_sentences, "room/a.py", f'"""{"a long story " * 20}."""\n', "characters", id="long"
        ),
        pytest.param(sizes, "room/a.py", '"""A."""\n' * 601, "601 lines", id="file"),
        pytest.param(
            sizes, "room/a.py", "def a():\n" + "    b()\n" * 80, "a.py:a has 81 lines", id="function"
        ),
        pytest.param(names, "room/a.py", "class RowManager:\n    pass\n", "RowManager", id="banned class"),
        pytest.param(names, "room/utils.py", "", "leftovers", id="banned file"),
        pytest.param(orphans, "room/a.py", "", "imported by nobody", id="orphan"),
        pytest.param(named_files, "room/a.py", '"""As `room/gone.py` does."""\n', "gone.py", id="file gone"),
        pytest.param(rooms, "attic/a.py", "", "attic", id="room without a place"),
    ],
)
def test_a_tree_that_breaks_a_rule_is_refused(
    tmp_path: Path, rule: Callable[[Path], list[str]], name: str, text: str, found: str
) -> None:
    path = tmp_path / "src" / "ropewalk" / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    (tmp_path / "ARCHITECTURE.md").write_text("| `room` | a room |\n")
    (complaint,) = rule(tmp_path)
    assert found in complaint


@pytest.mark.parametrize(
    ("where", "line"),
    [
        pytest.param("log/planted.py", "from ropewalk.kafka import apis", id="between rooms"),
        pytest.param(
            "broker/peers/planted.py", "from ropewalk.broker.watching import health", id="inside broker"
        ),
        pytest.param(
            "broker/reading/planted.py", "from ropewalk.broker.copying import fetcher", id="siblings"
        ),
        pytest.param(
            "broker/hosting/planted.py", "from ropewalk.wire import error_code", id="the wire outside peers"
        ),
        pytest.param("groups/planted.py", "import asyncio", id="a core with a loop"),
    ],
)
def test_an_import_that_goes_up_is_refused(tmp_path: Path, where: str, line: str) -> None:
    shutil.copytree(
        ROOT / "src" / "ropewalk",
        tmp_path / "ropewalk",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    (tmp_path / "ropewalk" / where).write_text(f'"""Planted."""\n\n{line}\n')
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert contracts
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache", "--config", ROOT / "pyproject.toml"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0, done.stdout
    assert "planted" in done.stdout
