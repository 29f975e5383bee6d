"""Jobs from files and command lines, without Spark."""

from typing import Literal

import pytest
from msgspec import Struct

from ropewalk.spark.pipelines.definition import Job, Table, define, parse_file
from ropewalk.spark.pipelines.settings import describe_settings, read_settings, words_to_settings
from ropewalk.spark.refusals import WrongUse


class Settings(Struct, frozen=True):
    to: str
    """The directory
    that holds the table."""
    retain_days: int = 30
    """Older files go."""
    compact: bool = True
    columns: list[str] = []
    """Which of them."""
    renamed: dict[str, str] = {}
    schema: str | None = None
    table: Literal["delta", "parquet"] = "delta"


class NoTarget(Struct, frozen=True):
    sql: str = "SELECT 1"


KINDS: dict[str, type[Struct]] = {"archive": Settings, "transform": NoTarget}
FILE = """
[pipeline.orders]
kind = "archive"
bootstrap = "broker:9092"
topics = ["orders", "returns"]
once = true
master = "spark://m:7077"
[pipeline.orders.source]
maxOffsetsPerTrigger = 1000
failOnDataLoss = false
[pipeline.orders.conf]
"spark.executor.memory" = "2g"
[pipeline.orders.settings]
to = "s3a://lake/orders/"
retain_days = 7
"""


def settings_of(kind: str) -> type[Struct]:
    if kind not in KINDS:
        raise WrongUse(f"there is no kind of pipeline {kind!r}")
    return KINDS[kind]


def defined(
    asked: str, *words: str, file: str = "", given: Table | None = None, name: str | None = None
) -> Job:
    return define(
        asked,
        parse_file(file, "pipelines.toml"),
        given or Table(),
        words,
        name=name,
        settings_of=settings_of,
        state="/state",
    )


def test_a_kind_needs_no_file() -> None:
    job = defined("archive", "--to", "/data/lake", given=Table(topics=["demo"], once=True))
    assert (job.name, job.kind, job.bootstrap, job.once) == ("archive", "archive", "127.0.0.1:9092", True)
    assert job.source == {"startingOffsets": "earliest", "subscribe": "demo"}
    assert job.checkpoint == "/data/lake/_ropewalk/checkpoints/archive"
    assert (job.master, job.remote, job.interval) == ("local[*]", None, "5 seconds")
    assert job.settings == Settings("/data/lake")


def test_a_job_of_a_file_and_what_the_command_line_says_instead() -> None:
    job = defined("orders", file=FILE)
    assert (job.name, job.kind, job.bootstrap, job.once) == ("orders", "archive", "broker:9092", True)
    assert job.source == {
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "1000",
        "failOnDataLoss": "false",
        "subscribe": "orders,returns",
    }
    assert job.checkpoint == "/state/checkpoints/orders"
    assert (job.master, job.conf) == ("spark://m:7077", {"spark.executor.memory": "2g"})
    assert job.settings == Settings("s3a://lake/orders/", 7)
    said = Table(pattern="o.*", once=False, remote="sc://c", source={"maxOffsetsPerTrigger": "5"})
    job = defined("orders", "--retain-days=3", "--no-compact", file=FILE, given=said, name="again")
    assert (job.name, job.once, job.master, job.remote) == ("again", False, None, "sc://c")
    assert job.source["subscribePattern"] == "o.*"
    assert "subscribe" not in job.source
    assert job.source["maxOffsetsPerTrigger"] == "5"
    assert job.settings == Settings("s3a://lake/orders/", 3, compact=False)


def test_a_relative_target_is_kept_in_full(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(str(tmp_path))
    job = defined("archive", "--to", "./lake", given=Table(topics=["demo"]))
    assert job.checkpoint == f"{tmp_path}/lake/_ropewalk/checkpoints/archive"
    given = Table(topics=["demo"], checkpoint="cp")
    assert defined("transform", given=given).checkpoint == f"{tmp_path}/cp"


def test_a_start_by_time_takes_the_place_of_the_beginning() -> None:
    job = defined("archive", "--to=x", given=Table(topics=["a"], source={"startingTimestamp": "17"}))
    assert job.source == {"startingTimestamp": "17", "subscribe": "a"}


def test_the_command_lines_beginning_wins_however_the_file_says_it() -> None:
    file = "[pipeline.a]\nkind = 'archive'\ntopics = ['a']\n[pipeline.a.source]\nstartingTimestamp = 17\n"
    job = defined("a", "--to=x", file=file, given=Table(source={"startingOffsets": "latest"}))
    assert job.source == {"startingOffsets": "latest", "subscribe": "a"}


class Refused(Struct):
    saying: str
    file: str = ""
    asked: str = "archive"
    words: tuple[str, ...] = ("--to", "x")
    given: Table = Table(topics=["a"])


@pytest.mark.parametrize(
    "case",
    [
        Refused("is no TOML", file="[pipeline"),
        Refused("does not know 'pipelines'; did you mean pipeline?", file="[pipelines.a]"),
        Refused("does not know 'topic'; did you mean topics?", file="[pipeline.a]\ntopic = 'x'"),
        Refused("got `str` - at `$.topics`", file="[pipeline.a]\ntopics = 'x'"),
        Refused("a table of its own", file="pipeline = 3"),
        Refused("is no name for a job", file='[pipeline."a/b"]'),
        Refused("does not say what it is", file="[pipeline.a]", asked="a"),
        Refused("[pipeline.a]: there is no kind", file="[pipeline.a]\nkind = 'x'", asked="a"),
        Refused("jobs of the file: a", file="[pipeline.a]", asked="b"),
        Refused("must be told to: say --to", words=()),
        Refused("there is no option --retain-day; did you mean --retain-days?", words=("--retain-day", "3")),
        Refused(
            "retain_days is 'many', must be a whole number", words=("--to", "x", "--retain-days", "many")
        ),
        Refused(
            "table is 'parket', must be delta or parquet; did you mean parquet?",
            words=("--to", "x", "--table", "parket"),
        ),
        Refused("--to needs a value", words=("--to",)),
        Refused("'lake' stands alone", words=("lake",)),
        Refused("is not KEY=VALUE", words=("--to", "x", "--renamed", "key")),
        Refused("say what to read", given=Table()),
        Refused("must be a positive number", given=Table(topics=["a"], source={"minPartitions": "none"})),
        Refused("unknown option: offsets", given=Table(topics=["a"], source={"offsets": "3"})),
        Refused("one of subscribe, subscribePattern", given=Table(topics=["a"], pattern="b")),
        Refused(
            "give one of startingOffsets, startingTimestamp",
            given=Table(topics=["a"], source={"startingOffsets": "latest", "startingTimestamp": "17"}),
        ),
        Refused("interval is '5'", given=Table(topics=["a"], interval="5")),
        Refused("not both", given=Table(topics=["a"], master="local", remote="sc://x")),
        Refused("--checkpoint DIR", asked="transform", words=()),
        Refused("archive has no setting 'too'; did you mean to?", given=Table(settings={"too": "x"})),
    ],
    ids=lambda case: case.saying,
)
def test_what_cannot_be_meant_is_refused_with_what_could(case: Refused) -> None:
    with pytest.raises(WrongUse) as caught:
        defined(case.asked, *case.words, file=case.file, given=case.given)
    assert case.saying in str(caught.value)


def test_words_become_what_the_field_is() -> None:
    words = [
        "--columns",
        "a",
        "--columns=b",
        "--renamed",
        "k=v",
        "--renamed",
        "x=y=z",
        "--compact",
        "--schema",
        "s.avsc",
        "--to",
        "t",
    ]
    found = words_to_settings(Settings, words)
    assert read_settings(Settings, found, "archive") == Settings(
        "t", columns=["a", "b"], renamed={"k": "v", "x": "y=z"}, schema="s.avsc"
    )


def test_settings_are_described_from_the_class() -> None:
    described = {each.name: each for each in describe_settings(Settings)}
    assert (described["to"].required, described["to"].meaning) == (
        True,
        "The directory that holds the table.",
    )
    assert (described["retain_days"].default, described["retain_days"].required) == (30, False)
    assert described["columns"].default == []
