"""How jobs are, for those who ask elsewhere: keyed records in the compacted topic `__pipelines`.

    orders          the job's status as JSON: state, figures, where it runs, when it was heard
    orders/error    what it failed with last

What a reader could get wrong
    A thread of its own writes, so that brokers that do not answer hold up nobody: what could not be written is told once in the log, and the newest state is
    written when the next is due.
    A job says that it is there every ten seconds, also if nothing happens. Who died without a word is told by its silence.
    Whoever asks for the topic first makes it; what it is like is the cluster's decision.
"""

import os
import socket
import threading
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Final

import msgspec
import structlog
from msgspec import Struct
from msgspec.structs import replace

from ropewalk.base.errors import RopewalkError
from ropewalk.base.limits import (
    PIPELINE_ERROR_CHARACTERS_MAX,
    PIPELINE_HEARD_EVERY_MS,
    PIPELINE_SILENT_MS_MAX,
    PIPELINE_STATUS_BYTES_MAX,
    PIPELINE_STATUS_PATIENCE_MS,
)
from ropewalk.client.blocking.admin import Admin
from ropewalk.client.blocking.producer import Producer
from ropewalk.client.connections.security import NO_SECURITY, ClientSecurity
from ropewalk.spark.brokers import Brokers
from ropewalk.spark.columns import Column
from ropewalk.spark.options import LATEST, AtOffsets, parse_source
from ropewalk.spark.pipelines.status import State, Status
from ropewalk.spark.ranges import FROM_THE_START, Range
from ropewalk.spark.refusals import Refusal, WrongUse
from ropewalk.spark.security import with_environment

TOPIC: Final = "__pipelines"
_ERROR: Final = "/error"
"""Behind a job's name, which cannot have a slash."""

_log = structlog.get_logger()


class LastError(Struct, frozen=True):
    at: str
    error: str


class StatusTopic:
    """Tells the cluster of one job. Use it as a context: at its end the last state is written, if brokers answer."""

    def __init__(self, bootstrap: str, security: ClientSecurity = NO_SECURITY) -> None:
        self._bootstrap = bootstrap
        self._security = security
        self._newest: Status | None = None
        self._changed = threading.Event()
        self._is_over = False
        self._thread = threading.Thread(target=self._tell, name="status", daemon=True)
        self._producer: Producer | None = None
        self._is_failing = False

    def __enter__(self) -> "StatusTopic":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over = True
        self._changed.set()
        self._thread.join(2 * PIPELINE_STATUS_PATIENCE_MS / 1000)

    def put(self, status: Status) -> None:
        """Returns at once."""
        self._newest = status
        self._changed.set()

    def _tell(self) -> None:
        is_over = False
        while not is_over:
            self._changed.wait(PIPELINE_HEARD_EVERY_MS / 1000)
            self._changed.clear()
            is_over = self._is_over  # before the look at the state: the last one is there when it is set
            status = self._newest
            if status is not None:
                self.write(status)
        self._close()

    def write(self, status: Status) -> None:
        """What its thread does when something is due."""
        try:
            producer = self._connected()
            sent = [
                producer.send(TOPIC, value, key=key) for key, value in records_of(status, datetime.now(UTC))
            ]
            for each in sent:
                each.result(PIPELINE_STATUS_PATIENCE_MS / 1000)
            self._is_failing = False
        except (RopewalkError, OSError, TimeoutError) as error:
            if not self._is_failing:
                _log.warning(
                    "the cluster cannot be told how the job is; it goes on, and this is tried again",
                    topic=TOPIC,
                    error=str(error),
                )
            self._is_failing = True
            self._close()

    def _connected(self) -> Producer:
        if self._producer is None:
            with Admin(
                self._bootstrap, request_timeout_ms=PIPELINE_STATUS_PATIENCE_MS, security=self._security
            ) as admin:
                admin.create_topic(TOPIC, exists_ok=True)
            made = Producer(
                self._bootstrap,
                max_block_ms=PIPELINE_STATUS_PATIENCE_MS,
                request_timeout_ms=PIPELINE_STATUS_PATIENCE_MS,
                delivery_timeout_ms=PIPELINE_STATUS_PATIENCE_MS,
                security=self._security,
            )
            made.start()
            self._producer = made
        return self._producer

    def _close(self) -> None:
        producer, self._producer = self._producer, None
        if producer is None:
            return
        try:
            producer.close()
        except (RopewalkError, OSError, TimeoutError) as error:
            _log.debug("a producer ended with records that nobody took", error=str(error))


def records_of(status: Status, now: datetime) -> list[tuple[bytes, bytes]]:
    """What is written of a job: keys and values, each of a bounded size."""
    at = now.isoformat(timespec="seconds")
    error = None if status.error is None else status.error[:PIPELINE_ERROR_CHARACTERS_MAX]
    told = replace(status, heard_at=at, error=error, host=status.host or socket.gethostname())
    value = msgspec.json.encode(told)
    if len(value) > PIPELINE_STATUS_BYTES_MAX:
        value = msgspec.json.encode(replace(told, progress=replace(told.progress, lags=())))
    records = [(told.name.encode(), value)]
    if error is not None:
        failed = LastError(status.updated_at, error)
        records.append((f"{told.name}{_ERROR}".encode(), msgspec.json.encode(failed)))
    return records


def read_topic(bootstrap: str, now: datetime) -> list[Status]:
    """Of all jobs that the cluster has heard of, by name. None where there is no such topic yet."""
    said = with_environment({"bootstrap": bootstrap, "subscribe": TOPIC}, os.environ)
    options = parse_source(said, streaming=False)
    found: list[tuple[bytes, bytes]] = []
    with Brokers(options) as brokers:
        view = brokers.wait(brokers.client.metadata((TOPIC,)))
        if not any(each.name == TOPIC and each.partitions for each in view.topics):
            return []
        partitions = brokers.partitions()
        ends = brokers.resolve(AtOffsets(LATEST), partitions, is_start=False)
    from ropewalk.spark.reading import read  # here: it loads what decodes records

    for partition, end in sorted(ends.items()):
        for rows in read(options, (Column.KEY, Column.VALUE), Range(partition, FROM_THE_START, end)):
            keys, values = (rows.column(each.value).to_pylist() for each in (Column.KEY, Column.VALUE))
            found += zip(keys, values, strict=True)
    return statuses_in(found, now)


def statuses_in(records: Iterable[tuple[bytes | None, bytes | None]], now: datetime) -> list[Status]:
    """Of records in the order of the topic. What no job has written is passed over: anybody can write there."""
    statuses: dict[str, Status] = {}
    errors: dict[str, LastError] = {}
    for key, value in records:
        try:
            name = (key or b"").decode()
            if name.endswith(_ERROR):
                errors[name.removesuffix(_ERROR)] = msgspec.json.decode(value or b"", type=LastError)
            elif value is None:
                statuses.pop(name, None)
            else:
                statuses[name] = msgspec.json.decode(value, type=Status)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
    return [
        replace(
            as_heard(status, now),
            last_error=errors[name].error if name in errors else None,
            last_error_at=errors[name].at if name in errors else None,
        )
        for name, status in sorted(statuses.items())
    ]


def as_heard(status: Status, now: datetime) -> Status:
    """One that says it is at work, and has not been heard for long, is not."""
    if status.state not in (State.STARTING, State.RUNNING):
        return status
    try:
        silent = now - datetime.fromisoformat(status.heard_at)
    except ValueError:
        return replace(status, state=State.DIED)
    return replace(status, state=State.DIED) if silent > _SILENT_MAX else status


_SILENT_MAX: Final = timedelta(milliseconds=PIPELINE_SILENT_MS_MAX)


def together(local: Iterable[Status], heard: Iterable[Status]) -> list[Status]:
    """Of each job one: what this machine knows of a run is more than what the cluster has heard of the same, and of a later run more than of an
    earlier one."""
    found = {each.name: each for each in heard}
    for each in local:
        other = found.get(each.name)
        if other is None or each.started_at >= other.started_at:
            failed = (
                each
                if other is None
                else replace(each, last_error=other.last_error, last_error_at=other.last_error_at)
            )
            found[each.name] = failed
    return [found[name] for name in sorted(found)]


def heard_of(bootstrap: str, now: datetime) -> list[Status]:
    """As `read_topic`; brokers that do not answer are told of with what to do."""
    try:
        return read_topic(bootstrap, now)
    except (RopewalkError, Refusal, OSError, TimeoutError) as error:
        raise WrongUse(f"{error}; without --bootstrap the jobs of this machine are told") from None
