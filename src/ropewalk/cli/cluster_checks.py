"""What `doctor` asks the cluster: can it be reached, by the addresses it gives itself, and what does it speak."""

from random import SystemRandom

from ropewalk.base.errors import RopewalkError
from ropewalk.cli.checks import Finding, Verdict
from ropewalk.cli.failure import describe
from ropewalk.client.address import Address
from ropewalk.client.client import Client
from ropewalk.client.connection import Connection
from ropewalk.client.settings import ClientSettings
from ropewalk.runtime.clock import SystemClock
from ropewalk.runtime.loop import run
from ropewalk.runtime.network import TcpNetwork
from ropewalk.wire.messages import fetch, metadata, produce

_PATIENCE_MS = 3_000


def check_cluster(bootstrap: tuple[Address, ...]) -> list[Finding]:
    return run(_check(bootstrap))


async def _check(bootstrap: tuple[Address, ...]) -> list[Finding]:
    settings = ClientSettings(request_timeout_ms=_PATIENCE_MS, connect_timeout_ms=_PATIENCE_MS)
    clock = SystemClock()
    findings = [await _reach("bootstrap", address, clock) for address in bootstrap]
    if all(finding.verdict is Verdict.WRONG for finding in findings):
        return findings
    try:
        async with Client(TcpNetwork(), clock, SystemRandom(), bootstrap, settings) as client:
            view = await client.metadata()
    except RopewalkError as error:
        return [*findings, Finding("cluster", Verdict.WRONG, describe(error))]
    leaderless = [
        f"{topic.name}-{partition.index}"
        for topic in view.topics
        for partition in topic.partitions
        if partition.leader < 0
    ]
    findings.append(
        Finding(
            "cluster",
            Verdict.GOOD,
            f"{view.cluster_id}: {len(view.brokers)} brokers, {len(view.topics)} topics, "
            f"controller {view.controller}",
        )
    )
    if leaderless:
        findings.append(Finding("leaders", Verdict.WRONG, f"nobody leads {', '.join(leaderless[:10])}"))
    # A client connects to the addresses that brokers give for themselves, not to the one it started from.
    findings += [await _reach(f"broker {broker.node_id}", broker.address, clock) for broker in view.brokers]
    return findings


async def _reach(check: str, address: Address, clock: SystemClock) -> Finding:
    started_ms = clock.monotonic_ms()
    try:
        connection = await Connection.open(
            TcpNetwork(), clock, address, client_id="ropewalk-doctor", deadline_ms=started_ms + _PATIENCE_MS
        )
    except RopewalkError as error:
        return Finding(check, Verdict.WRONG, describe(error))
    try:
        spoken = ", ".join(
            f"{api.name} v{connection.versions.choose(api)}" for api in (produce.API, fetch.API, metadata.API)
        )
    except RopewalkError as error:
        return Finding(check, Verdict.WRONG, describe(error))
    finally:
        connection.close()
    elapsed_ms = clock.monotonic_ms() - started_ms
    return Finding(
        check,
        Verdict.GOOD,
        f"{address} answered in {elapsed_ms:.0f} ms and offers {len(connection.versions)} APIs ({spoken})",
    )
