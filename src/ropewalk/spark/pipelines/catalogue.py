"""The kinds of pipelines. One is imported when it is asked for: some need packages that others do not."""

from importlib import import_module
from typing import Final, cast

from ropewalk.spark.pipelines.nearest import nearest
from ropewalk.spark.pipelines.pipeline import Pipeline
from ropewalk.spark.refusals import WrongUse

PIPELINES: Final = {
    "archive": "ropewalk.spark.pipelines.archive:Archive",
    "transform": "ropewalk.spark.pipelines.transform:Transform",
}
"""Module and class of each kind, in the order of lists."""


def pipeline(kind: str) -> type[Pipeline]:
    if kind not in PIPELINES:
        raise WrongUse(f"there is no kind of pipeline {kind!r}{nearest(kind, PIPELINES)}")
    module, _, name = PIPELINES[kind].partition(":")
    # The class is named in the table above, and a test holds every one of them against the protocol.
    return cast("type[Pipeline]", getattr(import_module(module), name))
