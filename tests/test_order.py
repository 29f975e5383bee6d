"""What is run together and what first, where several processes share the tests; and what `./test` makes of their report."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.order import APART, SECONDS, SESSION, SESSION_COUNT, deal, file_of, piece_of, turn_of
from tools import check

ROOT = Path(__file__).parent.parent
TAKEN = {f"{SESSION}test_long.py": 90.0, f"{SESSION}test_short.py": 30.0, f"{SESSION}test_other.py": 50.0}


def test_sessions_of_spark_take_about_as_long() -> None:
    dealt = deal([*TAKEN, "tests/log/test_index.py"], TAKEN)
    assert set(dealt) == set(TAKEN)
    assert dealt[f"{SESSION}test_long.py"] != dealt[f"{SESSION}test_other.py"]
    assert dealt[f"{SESSION}test_short.py"] == dealt[f"{SESSION}test_other.py"]


def test_what_takes_no_time_is_dealt_out_as_well() -> None:
    files = [f"{SESSION}test_{number}.py" for number in range(2 * SESSION_COUNT)]
    assert sorted(deal(files, {}).values()) == sorted(2 * [f"{SESSION}{n}" for n in range(SESSION_COUNT)])


def test_a_file_is_one_piece_of_work_and_so_is_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.order.APART", {"tests/chaos/test_apart.py"})
    sessions = deal(TAKEN, TAKEN)
    pieces = {
        "tests/log/test_index.py::test_one": "tests/log/test_index.py",
        "tests/log/test_index.py::TestAll::test_two[a::b]": "tests/log/test_index.py",
        f"{SESSION}test_long.py::test_one": f"{SESSION}0",
        "tests/chaos/test_apart.py::test_one[2]": "tests/chaos/test_apart.py::test_one[2]",
    }
    assert {nodeid: piece_of(nodeid, sessions) for nodeid in pieces} == pieces


def test_spark_comes_first_and_the_longest_before_others() -> None:
    taken = {
        **TAKEN,
        "tests/spark/test_daemons.py": 20.0,
        "tests/sim/test_long.py": 99.0,
        "tests/a/test_mid.py": 9,
    }
    sessions = deal(taken, taken)
    nodeids = ["tests/a/test_none.py::t", *(f"{name}::t" for name in sorted(taken))]
    ordered = [file_of(nodeid) for nodeid in sorted(nodeids, key=lambda each: turn_of(each, sessions, taken))]
    assert ordered == [
        *(f"{SESSION}test_{name}.py" for name in ("long", "other", "short")),
        "tests/spark/test_daemons.py",
        "tests/sim/test_long.py",
        "tests/a/test_mid.py",
        "tests/a/test_none.py",
    ]


def test_files_with_times_are_there() -> None:
    assert [name for name in SECONDS if not (ROOT / name).exists()] == [], "run ./test --write-seconds"


@pytest.mark.parametrize("name", sorted(APART))
def test_tests_that_are_run_apart_share_no_fixture_of_their_file(name: str) -> None:
    tree = ast.parse((ROOT / name).read_text())
    shared = [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and any("scope='" in ast.unparse(decorator) for decorator in node.decorator_list)
    ]
    assert shared == []


_REPORT = """<testsuites><testsuite>
<testcase classname="tests.test_order" name="test_one" time="1.5"/>
<testcase classname="tests.test_order.TestAll" name="test_two" time="2"/>
<testcase classname="tests.test_docs" name="test_three" time="0.5"/>
</testsuite></testsuites>"""


def test_the_time_of_a_file_is_that_of_its_tests(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    assert check.seconds_by_file(report) == {}  # pytest did not come so far
    report.write_text(_REPORT)
    assert check.seconds_by_file(report) == {"tests/test_docs.py": 0.5, "tests/test_order.py": 3.5}


_FAILED = """<testsuites><testsuite>
<testcase classname="tests.test_order" name="test_one" time="1.5"><failure message="no"/></testcase>
<testcase classname="tests.test_order" name="test_two" time="1.5"><skipped type="pytest.skip" message="no"/></testcase>
<testcase classname="tests.test_docs" name="test_three" time="0.5"><error message="no"/></testcase>
</testsuite></testsuites>"""


def test_failures_are_told_from_what_was_skipped(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    assert list(check.failures(report)) == []
    report.write_text(_FAILED)
    assert list(check.failures(report)) == ["tests/test_order.py::test_one", "tests/test_docs.py::test_three"]


@pytest.mark.parametrize(("second", "passed"), [("True", True), ("False", False)])
def test_only_what_failed_is_run_again(
    second: str, passed: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "test_it.py").write_text(
        "from pathlib import Path\n"
        "runs = Path(__file__).with_name('runs')\n"
        "def test_steady(): runs.open('a').write('steady ')\n"
        "def test_unsteady():\n"
        "    before = runs.read_text()\n"
        "    runs.open('a').write('unsteady ')\n"
        f"    assert 'unsteady' in before and {second}\n"
    )
    monkeypatch.setattr(check, "ROOT", tmp_path)
    monkeypatch.setattr(check, "BIN", Path(sys.executable).parent)
    monkeypatch.setattr(check, "CHECKS", {})
    first = check.run_all(["python", "-m", "pytest"])[-1]
    assert not first.passed
    again = check.run_again([], first)
    assert (tmp_path / "runs").read_text() == "steady unsteady unsteady "
    assert (again.name, again.passed) == ("pytest", passed)
    assert again.seconds > first.seconds


@pytest.mark.parametrize(
    ("given", "prefix"),
    [
        ({}, None),
        ({"PYTHONDONTWRITEBYTECODE": "1"}, str(check.BYTECODE)),
        ({"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": "/elsewhere"}, "/elsewhere"),
    ],
)
def test_what_is_compiled_is_kept(
    given: dict[str, str], prefix: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    environment = check.environment()
    assert environment.get("PYTHONPYCACHEPREFIX") == prefix
    told = subprocess.run(
        [sys.executable, "-c", "import sys; print(sys.dont_write_bytecode)"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == "False"


@pytest.mark.parametrize(("command", "passed"), [(["true"], True), (["false"], False), (["no-such"], False)])
def test_a_check_beside_the_tests_is_red_by_itself(
    command: list[str], passed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "BIN", Path("/bin"))
    monkeypatch.setattr(check, "CHECKS", {"first": ["true"], "second": command, "third": ["true"]})
    stages = check.run_all(["true"])
    assert {stage.name: stage.passed for stage in stages} == {
        "first": True,
        "second": passed,
        "third": True,
        "pytest": True,
    }


def test_checks_say_nothing_of_failed_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "BIN", Path("/bin"))
    monkeypatch.setattr(check, "CHECKS", {"first": ["true"]})
    assert [(stage.name, stage.passed) for stage in check.run_all(["false"])] == [
        ("first", True),
        ("pytest", False),
    ]
