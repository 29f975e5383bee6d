"""What `doctor` asks the cluster: can it be reached, by the addresses it gives itself, what does it speak, and what does each node say of itself,
its directory and its configuration."""

from pathlib import Path
from random import SystemRandom

from msgspec import structs

from ropewalk.base.errors import RopewalkError
from ropewalk.cli.checks import FREE_BYTES_LOW, Finding, Verdict, check_directory
from ropewalk.cli.failure import describe
from ropewalk.client.administration.membership import Membership
from ropewalk.client.calls.client import Client
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.connecting import Connector, connector
from ropewalk.client.connections.settings import ClientSettings
from ropewalk.client.errors import ApiNotOffered
from ropewalk.runtime.clock import SystemClock
from ropewalk.runtime.loop import run
from ropewalk.runtime.network import TcpNetwork
from ropewalk.views.asking import ask_everyone
from ropewalk.wire.messages import describe_log_dirs, fetch, metadata, produce

_PATIENCE_MS = 3_000


def check_cluster(bootstrap: tuple[Address, ...], given: ClientSettings) -> list[Finding]:
    return run(_check(bootstrap, given))


async def _check(bootstrap: tuple[Address, ...], given: ClientSettings) -> list[Finding]:
    settings = structs.replace(given, request_timeout_ms=_PATIENCE_MS, connect_timeout_ms=_PATIENCE_MS)
    clock = SystemClock()
    try:
        connect = connector(TcpNetwork(), clock, SystemRandom(), settings.security)
    except RopewalkError as error:
        return [Finding("client settings", Verdict.WRONG, describe(error))]
    findings = [await _reach("bootstrap", address, clock, connect) for address in bootstrap]
    if all(finding.verdict is Verdict.WRONG for finding in findings):
        return findings
    try:
        async with Client(TcpNetwork(), clock, SystemRandom(), bootstrap, settings) as client:
            view = await client.metadata()
            of_nodes = await check_nodes(client)
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
    findings += [
        await _reach(f"broker {broker.node_id}", broker.address, clock, connect) for broker in view.brokers
    ]
    return [*findings, *of_nodes]


async def check_nodes(client: Client) -> list[Finding]:
    """What every node says of itself, whether or not clients are told of it."""
    findings: list[Finding] = []
    try:
        answers = await ask_everyone(client)
    except ApiNotOffered:  # a broker of another kind
        return []
    for node_id, answer in sorted(answers.by_node.items()):
        check = f"node {node_id}"
        if isinstance(answer, RopewalkError):
            findings.append(Finding(check, Verdict.WRONG, str(answer)))
            continue
        answerer = answer.answerer
        if answerer is None:
            continue  # a broker of another kind
        what = "decides" if answerer.decides else f"heard the controller {answerer.age_ms / 1000:.1f} s ago"
        is_old = answerer.age_ms > answerer.session_timeout_ms
        findings.append(
            Finding(check, Verdict.WRONG if is_old else Verdict.GOOD, f"ropewalk {answerer.version}, {what}")
        )
        findings += [
            Finding(f"{check} {each.check}", Verdict.WRONG, each.problem) for each in answerer.problems
        ]
        findings += [Finding(f"{check} settings", Verdict.ODD, warning) for warning in answerer.warnings]
    versions = {
        answer.answerer.version
        for answer in answers.by_node.values()
        if isinstance(answer, Membership) and answer.answerer is not None
    }
    if len(versions) > 1:
        findings.append(
            Finding("versions of nodes", Verdict.ODD, f"they differ: {', '.join(sorted(versions))}")
        )
    return [*findings, *await _directories(client)]


async def _directories(client: Client) -> list[Finding]:
    findings: list[Finding] = []
    for broker in (await client.metadata()).brokers:
        check = f"node {broker.node_id} directory"
        try:
            connection = await client.session.cluster.connection(
                broker.node_id, deadline_ms=client.session.deadline_ms(_PATIENCE_MS)
            )
            response = await connection.call(
                describe_log_dirs.API,
                describe_log_dirs.DescribeLogDirsRequest(topics=()),
                deadline_ms=client.session.deadline_ms(_PATIENCE_MS),
            )
        except ApiNotOffered:
            continue
        except RopewalkError as error:
            findings.append(Finding(check, Verdict.WRONG, describe(error)))
            continue
        for each in response.results:
            if each.total_bytes > 0:
                findings += [_directory(check, each), *_on_this_machine(check, broker.address, each.log_dir)]
    return findings


def _on_this_machine(check: str, address: Address, directory: str) -> list[Finding]:
    """Of a node that runs here more can be seen than it says."""
    path = Path(directory)
    if not address.host.startswith(("127.", "localhost", "::1")) or not path.is_dir():
        return []
    return [structs.replace(each, check=f"{check}: {each.check}") for each in check_directory(path, path)]


def _directory(check: str, found: describe_log_dirs.DescribeLogDirsResult) -> Finding:
    room = f"{found.usable_bytes / 2**30:.1f} GiB of {found.total_bytes / 2**30:.1f} GiB free"
    if found.usable_bytes < FREE_BYTES_LOW:
        return Finding(check, Verdict.ODD, f"{found.log_dir}: {room}; a full disk refuses writes")
    return Finding(check, Verdict.GOOD, f"{found.log_dir}: {room}")


async def _reach(check: str, address: Address, clock: SystemClock, connect: Connector) -> Finding:
    started_ms = clock.monotonic_ms()
    try:
        connection = await connect(
            address, client_id="ropewalk-doctor", deadline_ms=started_ms + _PATIENCE_MS
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
