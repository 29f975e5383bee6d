"""One run of the fuzzer: a node, a neighbour, volleys, and the verdict."""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import repeat
from pathlib import Path
from typing import Final

import uvloop
from msgspec import Struct

from ropewalk.kafka.apis import SERVED_APIS
from ropewalk.wire.api import AnyApi
from ropewalk.wire.frames import frame
from ropewalk.wire.headers import decode_response_header, encode_request_header
from ropewalk.wire.messages import api_versions, create_topics, metadata
from ropewalk.wire.types import Message
from tests.fuzz.forecast import Forecaster
from tests.fuzz.hostile_values import LASTING, stand_in
from tests.fuzz.sender import Sender, Tally
from tests.fuzz.target import Target
from tests.fuzz.volley import Battery, Volley

CONNECTIONS: Final = 24
NODE_SETTINGS: Final = (
    "log.segment.bytes=1048576",
    "log.retention.bytes=8388608",
    "log.retention.check.interval.ms=1000",
    "max.broker.partitions=400",
)
"""What is written is kept for a while only, and the topics that mutated names leave behind are soon too many: the run is
about requests, and it is a long one."""

_LASTING_SETTINGS: Final[dict[str, dict[str, str]]] = {
    "lasting-plain": {},
    "lasting-compacted": {"cleanup.policy": "compact"},
    "lasting-stamped": {"message.timestamp.type": "LogAppendTime", "compression.type": "zstd"},
    "lasting-small": {"max.message.bytes": "200"},
    "neighbour": {"retention.bytes": "-1", "retention.ms": "-1"},
}


class Plan(Struct, frozen=True, kw_only=True):
    seed: int = 0
    frames: int | None = None
    seconds: float | None = None
    in_memory: bool = True
    settings: tuple[str, ...] = ()
    memory_bytes_max: int = 1 << 30
    first: int = 0
    """The volley to begin with."""
    volley: int | None = None
    """This one only, `repeat` times."""
    repeat: int = 1


class Report(Struct):
    """What a run found; `violations` must be empty."""

    tally: Tally
    violations: list[str]
    seconds: float = 0.0
    memory_mib_max: int = 0
    memory_mib_end: int = 0
    descriptors_max: int = 0
    topic_count: int = 0
    partition_count: int = 0
    node_cpu_s: float = 0.0
    own_cpu_s: float = 0.0
    log_lines_of_refusals: int = 0
    neighbour: dict[str, object] = {}
    stop_s: float = 0.0
    start_again_s: float = 0.0


def run(plan: Plan, progress: Callable[[str], None] = lambda _: None) -> Report:
    with tempfile.TemporaryDirectory(prefix="ropewalk-fuzz-") as scratch:
        target = Target(Path(scratch), in_memory=plan.in_memory, settings=(*NODE_SETTINGS, *plan.settings))
        target.start()
        try:
            return uvloop.run(_campaign(plan, target, progress))
        finally:
            if target.is_alive:
                target.kill()


async def _campaign(plan: Plan, target: Target, progress: Callable[[str], None]) -> Report:
    versions = await _versions(target)
    served = {api.key: api for api in SERVED_APIS if api.key in versions}
    pairs = [(api, version) for api in served.values() for version in versions[api.key]]
    await _make_topics(target)
    forecaster = Forecaster(served, versions)
    battery = Battery(pairs, forecaster, plan.seed)
    report = Report(Tally(), [])
    neighbour = _start_neighbour(target)
    began = time.monotonic()
    try:
        await _fire(plan, battery, forecaster, target, report, progress, began, await _topic_ids(target))
    finally:
        report.neighbour = json.loads(neighbour.communicate()[0] or b"{}")
    report.seconds = time.monotonic() - began
    if target.is_alive:
        report.topic_count, report.partition_count = await _count_partitions(target)
    if plan.volley is not None:
        progress(target.log_path.read_text(errors="replace"))
    _judge(plan, target, report)
    return report


async def _fire(
    plan: Plan,
    battery: Battery,
    forecaster: Forecaster,
    target: Target,
    report: Report,
    progress: Callable[[str], None],
    began: float,
    topic_ids: dict[bytes, bytes],
) -> None:
    tally = report.tally
    sender = Sender(
        target.address,
        _volleys(plan, battery, tally, began),
        tally,
        topic_ids=topic_ids,
        forecaster=forecaster,
        connection_count=CONNECTIONS if plan.volley is None else 1,
    )
    firing = asyncio.ensure_future(sender.run())
    said_at = began
    while not firing.done():
        await asyncio.wait([firing], timeout=1.0)
        sender.check_patience()
        target.look()
        if target.alarms or not target.is_alive or target.memory_bytes_max > plan.memory_bytes_max:
            sender.stop()
        if time.monotonic() - said_at >= 10:
            said_at = time.monotonic()
            rate = tally.frames / (said_at - began)
            progress(
                f"{tally.frames:>11,} frames  {rate:7,.0f}/s  {tally.volleys:,} connections  "
                f"{target.memory_bytes >> 20 if target.is_alive else 0} MiB"
            )
    await firing


def _volleys(plan: Plan, battery: Battery, tally: Tally, began: float) -> Iterator[Volley]:
    if plan.volley is not None:
        yield from repeat(battery.volley(plan.volley), plan.repeat)
        return
    number = plan.first
    while (plan.frames is None or tally.frames < plan.frames) and (
        plan.seconds is None or time.monotonic() - began < plan.seconds
    ):
        yield battery.volley(number)
        number += 1


def _judge(plan: Plan, target: Target, report: Report) -> None:
    """After the storm: what the node left in its log, whether it stops, starts again and kept its records."""
    violations = report.violations
    violations += report.tally.findings
    records = int(str(report.neighbour.get("records", 0)))
    violations += [f"neighbour: {trouble}" for trouble in _list(report.neighbour.get("troubles"))]
    if not records:
        violations.append("the neighbour got nothing done")
    target.look()
    report.node_cpu_s, report.own_cpu_s = target.cpu_s, time.process_time()
    report.descriptors_max = target.descriptors_max
    report.memory_mib_max = target.memory_bytes_max >> 20
    if target.memory_bytes_max > plan.memory_bytes_max:
        violations.append(
            f"the node used {report.memory_mib_max} MiB, {plan.memory_bytes_max >> 20} are allowed"
        )
    if not target.is_alive:
        violations.append(f"the node died; its last words:\n{target.last_words()}")
    else:
        report.memory_mib_end = target.memory_bytes >> 20
        code, report.stop_s = target.stop()
        if code != 0:
            violations.append(f"the node ended with {code} when it was told to stop")
        report.start_again_s = target.start()
        if not plan.in_memory:
            kept = json.loads(_start_neighbour(target, "--verify", str(records)).communicate()[0])
            violations += [f"after a restart: {trouble}" for trouble in _list(kept["troubles"])]
        if (code := target.stop()[0]) != 0:
            violations.append(f"the node ended with {code} after it was started again")
    target.look()
    report.log_lines_of_refusals = target.refusals
    violations += [f"in the node's log: {alarm}" for alarm in target.alarms[:10]]


def _list(value: object) -> list[object]:
    assert isinstance(value, list), f"{value!r} is what the neighbour left behind"
    return value


def _start_neighbour(target: Target, *arguments: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "tests.fuzz.neighbour", target.bootstrap, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


async def _versions(target: Target) -> dict[int, range]:
    """What the node says it serves, as far as the codec knows it: Produce is advertised from versions that are not."""
    answer = await _ask(target, api_versions.API, 3, api_versions.ApiVersionsRequest("fuzzer", "1"))
    assert isinstance(answer, api_versions.ApiVersionsResponse)
    known = {api.key: api for api in SERVED_APIS}
    return {
        entry.api_key: range(max(entry.min_version, known[entry.api_key].version_min), entry.max_version + 1)
        for entry in answer.api_keys
        if entry.api_key in known
    }


async def _make_topics(target: Target) -> None:
    topics = tuple(
        create_topics.CreatableTopic(
            name,
            1 if name == "neighbour" else 3,
            1,
            configs=tuple(create_topics.CreatableTopicConfig(*setting) for setting in settings.items()),
        )
        for name, settings in _LASTING_SETTINGS.items()
    )
    answer = await _ask(target, create_topics.API, 7, create_topics.CreateTopicsRequest(topics))
    assert isinstance(answer, create_topics.CreateTopicsResponse)
    assert all(topic.error_code == 0 for topic in answer.topics), answer


async def _topic_ids(target: Target) -> dict[bytes, bytes]:
    asked = tuple(metadata.MetadataRequestTopic(name=name) for name in LASTING)
    answer = await _ask(target, metadata.API, 12, metadata.MetadataRequest(asked))
    assert isinstance(answer, metadata.MetadataResponse)
    return {stand_in(str(topic.name)): topic.topic_id for topic in answer.topics}


async def _count_partitions(target: Target) -> tuple[int, int]:
    answer = await _ask(target, metadata.API, 12, metadata.MetadataRequest(None))
    assert isinstance(answer, metadata.MetadataResponse)
    return len(answer.topics), sum(len(topic.partitions) for topic in answer.topics)


async def _ask(target: Target, api: AnyApi, version: int, request: Message) -> Message:
    """One question on a connection of its own."""
    reader, writer = await asyncio.open_connection(*target.address)
    header = encode_request_header(api, version, 1, None)
    writer.writelines(frame([header, *api.encode_request(version, request)]))
    size = int.from_bytes(await reader.readexactly(4), "big")
    answer = memoryview(await reader.readexactly(size))
    writer.close()
    _, body = decode_response_header(api, version, answer, 0, size)
    response: Message = api.decode_response(version, answer, body, size)
    return response
