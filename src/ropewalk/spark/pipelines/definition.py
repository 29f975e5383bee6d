"""A job: from a TOML file, from the words of a command line, or from both, where the words win.

    [pipeline.orders]
    kind = "archive"
    topics = ["orders", "returns"]

    [pipeline.orders.settings]
    to = "/data/lake"

What a reader could get wrong
    A job needs no file: the name of a kind is the name of a job that has everything from the command line.
    Paths stand for what they mean where the command is called; what is kept of them is absolute, because Spark works elsewhere.
    Everything that can be refused without Spark is refused here: a session takes longer to start than a typing error to find.
"""

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from ropewalk.spark.options import parse_source
from ropewalk.spark.pipelines.nearest import nearest
from ropewalk.spark.pipelines.settings import read_settings, words_to_settings
from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.security import with_environment
from ropewalk.spark.storage import Storage, is_object_store, resolve

DEFAULT_FILE: Final = "pipelines.toml"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_INTERVAL: Final = re.compile(r"\d+ *(milliseconds?|seconds?|minutes?|hours?|days?)")

_BEGINNINGS: Final = ("startingoffsets", "startingtimestamp", "startingoffsetsbytimestamp")


class Table(Struct, kw_only=True, frozen=True):
    """`[pipeline.NAME]` of a file, or what a command line says in its place. None is: not said."""

    kind: str | None = None
    bootstrap: str | None = None
    topics: list[str] | None = None
    pattern: str | None = None
    source: dict[str, str | int | bool] = {}
    """Options of the source by their names."""
    checkpoint: str | None = None
    once: bool | None = None
    interval: str | None = None
    master: str | None = None
    remote: str | None = None
    conf: dict[str, str | int | bool] = {}
    """Settings of the Spark session."""
    settings: dict[str, object] = {}
    storage: dict[str, object] = {}
    """Of object stores: `ropewalk.spark.storage`. There is no word of a command line for it, since others see those."""


class Job(Struct, frozen=True, kw_only=True):
    """Everything that is to be known before Spark is started."""

    name: str
    kind: str
    bootstrap: str
    source: dict[str, str]
    checkpoint: str
    once: bool
    interval: str
    master: str | None
    """None with `remote`, and where Spark's own settings are to say."""
    remote: str | None
    conf: dict[str, str]
    settings: Struct
    storage: Storage = Storage()
    is_named: bool = True
    """Somebody has given it a name. Otherwise it is called by its kind, like any other such job."""


def parse_file(text: str, where: str) -> dict[str, Table]:
    """The jobs of a file by their names, in its order."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise WrongUse(f"{where} is no TOML: {error}") from None
    _refuse_unknown(document, ["pipeline"], where)
    jobs = document.get("pipeline", {})
    if not isinstance(jobs, dict) or not all(isinstance(table, dict) for table in jobs.values()):
        raise WrongUse(f"{where}: write a job as a table of its own, [pipeline.NAME]")
    return {_named(name): _table(table, f"{where}: [pipeline.{name}]") for name, table in jobs.items()}


def define(
    asked: str,
    jobs: Mapping[str, Table],
    given: Table,
    words: Iterable[str] = (),
    *,
    name: str | None = None,
    settings_of: Callable[[str], type[Struct]],
    bootstrap: str | None = None,
    state: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Job:
    """`asked` is a job of the file or a kind; `words` are flags for the kind's own settings; `bootstrap` where nobody says one; `state`: where
    what this machine remembers of jobs is kept; `environment`: who else may say where object stores are."""
    table = jobs.get(asked, Table(kind=asked))
    kind = given.kind or table.kind
    if kind is None:
        raise WrongUse(f'[pipeline.{asked}] does not say what it is: add kind = "archive" or another')
    settings_type = _known_kind(kind, asked, jobs, settings_of)
    settings = read_settings(
        settings_type, {**table.settings, **given.settings, **words_to_settings(settings_type, words)}, kind
    )
    called = _named(name or asked)
    bootstrap = given.bootstrap or table.bootstrap or bootstrap or "127.0.0.1:9092"
    interval = given.interval or table.interval or "5 seconds"
    if _INTERVAL.fullmatch(interval) is None:
        raise WrongUse(f'interval is {interval!r}, must be like "5 seconds" or "2 minutes"')
    remote = given.remote or (None if given.master else table.remote)
    master = None if remote else given.master or table.master or "local[*]"
    if remote and (given.master or (table.master and not given.remote)):
        raise WrongUse("give a master or a remote Connect server, not both")
    return Job(
        name=called,
        kind=kind,
        bootstrap=bootstrap,
        source=_source(table, given, bootstrap, environment or {}),
        checkpoint=_checkpoint(given.checkpoint or table.checkpoint, settings, called, state),
        once=given.once if given.once is not None else bool(table.once),
        interval=interval,
        master=master,
        remote=remote,
        conf={**_texts(table.conf), **_texts(given.conf)},
        settings=settings,
        storage=resolve(table.storage, environment or {}, f"[pipeline.{asked}.storage]"),
        is_named=name is not None or asked in jobs,
    )


def _refuse_unknown(given: Iterable[str], known: Iterable[str], where: str) -> None:
    names = list(known)
    for name in given:
        if name not in names:
            raise WrongUse(f"{where} does not know {name!r}{nearest(name, names)}")


def _table(given: dict[str, object], where: str) -> Table:
    _refuse_unknown(given, Table.__struct_fields__, where)
    try:
        return msgspec.convert(given, Table)
    except msgspec.ValidationError as error:
        raise WrongUse(f"{where}: {error}") from None


def _known_kind(
    kind: str, asked: str, jobs: Mapping[str, Table], settings_of: Callable[[str], type[Struct]]
) -> type[Struct]:
    try:
        return settings_of(kind)
    except WrongUse as error:
        if asked in jobs:
            raise WrongUse(f"[pipeline.{asked}]: {error}") from None
        jobs_known = f"; jobs of the file: {', '.join(jobs)}" if jobs else ""
        raise WrongUse(f"{error}{jobs_known}") from None


def _source(table: Table, given: Table, bootstrap: str, environment: Mapping[str, str]) -> dict[str, str]:
    """What is read, from the beginning unless told otherwise: a pipeline that is set up late takes what is there."""
    options: dict[str, str] = {"startingOffsets": "earliest"}
    for more in (_texts(table.source), _texts(given.source)):
        if any(name.lower() in _BEGINNINGS for name in more):
            # Whoever says a beginning says it in place of the one before, in whichever way that was said.
            options = {name: value for name, value in options.items() if name.lower() not in _BEGINNINGS}
        options |= more
    said = given if given.topics or given.pattern else table
    if said.topics:
        options["subscribe"] = ",".join(said.topics)
    if said.pattern:
        options["subscribePattern"] = said.pattern
    if not {"subscribe", "subscribePattern", "assign"} & options.keys():
        raise WrongUse("say what to read: --topic NAME, --pattern REGEX, or topics in the file")
    options = with_environment(options, environment)
    parse_source({"bootstrap": bootstrap, **options}, streaming=True)
    return options


def _checkpoint(said: str | None, settings: Struct, name: str, state: str | None) -> str:
    """Below the target; beside the job's status if that is in an object store, which Spark as it comes cannot write to. Outputs know how far
    the job has come, so that little is lost with this machine."""
    if said is not None:
        return absolute(said)
    to = getattr(settings, "to", None)
    is_far = isinstance(to, str) and is_object_store(to)
    if is_far and state is not None:
        return os.path.join(os.path.abspath(state), "checkpoints", name)
    if not isinstance(to, str) or not to or is_far:
        raise WrongUse("say where the job's progress is kept: --checkpoint DIR, or checkpoint in the file")
    return f"{absolute(to).rstrip('/')}/_ropewalk/checkpoints/{name}"


def absolute(path: str) -> str:
    """A path of this machine in full; what names its file system stays as it is."""
    return path if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:/", path) else os.path.abspath(path)


def _named(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise WrongUse(
            f"{name!r} is no name for a job: letters, digits, dots, dashes and underscores, at most 100"
        )
    return name


def _texts(values: Mapping[str, str | int | bool]) -> dict[str, str]:
    """As Spark writes them."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in values.items()
    }
