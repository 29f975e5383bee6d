"""The guide is true: its examples, pasted into test files as they stand, pass."""

import re
from pathlib import Path

import aiokafka  # noqa: F401  loaded once, not again by the inner session
import confluent_kafka  # noqa: F401  likewise
import pytest
import uvloop  # noqa: F401  likewise

import ropewalk.testing.namespace  # noqa: F401  likewise

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.compat

GUIDE = Path(__file__).parents[2] / "docs/guides/testing-with-ropewalk.md"


def examples(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE.read_text(), re.DOTALL | re.MULTILINE)


def test_every_example_passes(pytester: pytest.Pytester) -> None:
    programs = examples("python")
    (settings,) = examples("toml")
    pytester.makepyprojecttoml(settings)
    for number, program in enumerate(programs):
        assert "def test_" in program
        (pytester.path / f"test_example_{number}.py").write_text(program)
    tests = sum(program.count("def test_") for program in programs)
    pytester.runpytest_inprocess("-W", "error::pytest.PytestWarning").assert_outcomes(passed=tests)
