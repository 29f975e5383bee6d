"""Every story in `scenarios/` still ends as it is told there. REWRITE=1 writes them anew, for a look at the difference."""

import os
from pathlib import Path

import pytest

from tests.queues.storyteller import QueueStory

SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_story_ends_as_it_is_told(path: Path) -> None:
    told = QueueStory().retell(path)
    if os.environ.get("REWRITE"):
        path.write_text(told)
    assert path.read_text() == told


def test_there_are_stories() -> None:
    assert len(SCENARIOS) >= 7
