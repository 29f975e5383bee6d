"""How handlers are written, where that can be seen from outside."""

from pathlib import Path

import pytest

import ropewalk.kafka.handlers

HANDLERS = sorted(Path(ropewalk.kafka.handlers.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("path", HANDLERS, ids=lambda path: path.stem)
def test_no_handler_asserts_the_type_of_an_answer(path: Path) -> None:
    """A command says what it is answered with (`Command[T]`), and the checker knows it."""
    assert "assert isinstance" not in path.read_text()


def test_there_are_handlers() -> None:
    assert len(HANDLERS) > 40
