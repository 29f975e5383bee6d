"""Every kind of pipeline that is listed offers what the runner asks of it, and explains itself."""

import pytest

from ropewalk.spark.pipelines.archive import Archive
from ropewalk.spark.pipelines.catalogue import PIPELINES, pipeline
from ropewalk.spark.pipelines.pipeline import Pipeline
from ropewalk.spark.pipelines.settings import describe_settings
from ropewalk.spark.pipelines.transform import Transform
from ropewalk.spark.refusals import WrongUse

KINDS: dict[str, type[Pipeline]] = {"archive": Archive, "transform": Transform}
"""Here the type checker holds them against the protocol."""


def test_the_listed_kinds_are_those_there_are() -> None:
    assert {kind: pipeline(kind) for kind in PIPELINES} == KINDS


@pytest.mark.parametrize("kind", PIPELINES)
def test_a_kind_says_what_it_does_and_what_every_setting_means(kind: str) -> None:
    made = pipeline(kind)
    assert made.summary.endswith(".")
    assert [each.name for each in describe_settings(made.Settings) if not each.meaning] == []


def test_a_kind_that_is_not_there_is_refused_with_the_nearest() -> None:
    with pytest.raises(WrongUse, match=r"no kind of pipeline 'archiv'; did you mean archive\?"):
        pipeline("archiv")
