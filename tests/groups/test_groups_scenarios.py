"""Every story in `scenarios/` still ends as it is told there. REWRITE=1 writes them anew, for a look at the difference."""

import os
from pathlib import Path

import pytest

from ropewalk.groups.answers import Committed, HeartbeatTaken
from ropewalk.groups.commands import Commit
from tests.groups.storyteller import GroupStory
from tests.storyteller import check_type

SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_story_ends_as_it_is_told(path: Path) -> None:
    told = GroupStory().retell(path)
    if os.environ.get("REWRITE"):
        path.write_text(told)
    assert path.read_text() == told


def test_an_answer_of_another_type_than_promised_is_noticed() -> None:
    check_type(Commit("g", ()), Committed(()))
    with pytest.raises(AssertionError, match="was answered with HeartbeatTaken"):
        check_type(Commit("g", ()), HeartbeatTaken())


def test_there_are_stories() -> None:
    assert len(SCENARIOS) >= 8
