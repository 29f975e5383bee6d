"""`ropewalk bench`: how much, and how fast, from this machine to the cluster and back."""

from typing import TYPE_CHECKING, Annotated

import typer

from ropewalk.base.limits import BENCH_BATCH_RECORDS_MAX, BENCH_RECORD_BYTES_MAX, BENCH_SENDERS_MAX
from ropewalk.cli.commands import new_app
from ropewalk.cli.completion import complete_topic
from ropewalk.cli.failure import guarded
from ropewalk.cli.options import BootstrapOption, Output, OutputOption, PropertyOption, chosen_output
from ropewalk.cli.output import print_json, print_table
from ropewalk.cli.sending import AcksName, AcksOption, CodecName, CodecOption

if TYPE_CHECKING:
    from ropewalk.cli.bench_loads import Delays, Throughput
    from ropewalk.cli.latencies import LatencySummary
    from ropewalk.client.calls.client import Client

app = new_app("Measure this cluster from here: throughput and latency, of client and broker together.")

Topic = Annotated[
    str | None,
    typer.Option(
        "--topic",
        "-t",
        help="[default: a topic of its own, deleted afterwards]",
        autocompletion=complete_topic,
    ),
]
Partitions = Annotated[int, typer.Option("--partitions", "-p", min=1, help="Of its own topic.")]
Size = Annotated[int, typer.Option("--size", min=1, max=BENCH_RECORD_BYTES_MAX, help="Bytes of a record.")]
Batch = Annotated[
    int, typer.Option("--batch", min=1, max=BENCH_BATCH_RECORDS_MAX, help="Records sent together.")
]
Senders = Annotated[
    int, typer.Option("--senders", min=1, max=BENCH_SENDERS_MAX, help="How many send at the same time.")
]
Count = Annotated[int | None, typer.Option("--num", "-n", min=1, help="Stop after so many records.")]
Rate = Annotated[
    float | None, typer.Option("--rate", min=0.001, help="Records per second. [default: as fast as it goes]")
]
DURATION_HELP = "Stop after so long: 30s, 5m."


@app.command("produce")
@guarded
def bench_produce(
    ctx: typer.Context,
    topic: Topic = None,
    partitions: Partitions = 4,
    count: Count = None,
    duration: Annotated[
        str | None,
        typer.Option("--duration", metavar="TIME", help=f"{DURATION_HELP} [default: 10s, unless --num]"),
    ] = None,
    rate: Rate = None,
    size: Size = 1000,
    batch: Batch = 100,
    senders: Senders = 4,
    acks: AcksOption = AcksName.ALL,
    codec: CodecOption = CodecName.NONE,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Send records; show records and bytes per second, and how long batches took to be acknowledged."""
    from ropewalk.cli.bench_loads import Shape, bench_topic, produce
    from ropewalk.cli.connect import with_client
    from ropewalk.cli.progress import progress
    from ropewalk.cli.workload import Workload
    from ropewalk.client.calls.produce import Acks
    from ropewalk.records.codec import Codec

    shape = Shape(size, batch, senders, Acks(acks.number), Codec[codec.name])
    duration_ms = _duration_ms(duration, default="10s" if count is None else None)

    async def work(client: "Client") -> "Throughput":
        clock = client.session.clock
        async with bench_topic(client, topic, partitions=partitions) as name:
            with progress(clock, "produce") as shown:
                workload = Workload(clock.monotonic_ms(), count=count, duration_ms=duration_ms, rate=rate)
                return await produce(client, name, shape, workload, shown)

    result = with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    _print_throughput(result, chosen_output(ctx, output), acks)


@app.command("consume")
@guarded
def bench_consume(
    ctx: typer.Context,
    topic: Annotated[
        str | None,
        typer.Option(
            "--topic",
            "-t",
            help="[default: a topic of its own, filled first and deleted afterwards]",
            autocompletion=complete_topic,
        ),
    ] = None,
    partitions: Partitions = 4,
    count: Annotated[
        int | None,
        typer.Option(
            "--num", "-n", min=1, help="Records to read. [default: all there are; 100000 of its own]"
        ),
    ] = None,
    duration: Annotated[str | None, typer.Option("--duration", metavar="TIME", help=DURATION_HELP)] = None,
    size: Size = 1000,
    batch: Batch = 100,
    codec: CodecOption = CodecName.NONE,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Read a topic from its oldest record; show records and bytes per second. Every record is opened."""
    from ropewalk.cli.bench_loads import Shape, bench_topic, consume, produce
    from ropewalk.cli.connect import with_client
    from ropewalk.cli.progress import progress
    from ropewalk.cli.workload import Workload
    from ropewalk.records.codec import Codec

    shape = Shape(size, batch, partitions, codec=Codec[codec.name])
    duration_ms = _duration_ms(duration)

    async def work(client: "Client") -> "Throughput":
        clock = client.session.clock
        async with bench_topic(client, topic, partitions=partitions) as name:
            if topic is None:
                with progress(clock, "fill") as shown:
                    filling = Workload(
                        clock.monotonic_ms(), count=count or 100_000, duration_ms=None, rate=None
                    )
                    await produce(client, name, shape, filling, shown)
            with progress(clock, "consume") as shown:
                return await consume(client, name, count=count, duration_ms=duration_ms, progress=shown)

    result = with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    _print_throughput(result, chosen_output(ctx, output))


@app.command("latency")
@guarded
def bench_latency(
    ctx: typer.Context,
    topic: Topic = None,
    count: Count = None,
    duration: Annotated[
        str | None,
        typer.Option("--duration", metavar="TIME", help=f"{DURATION_HELP} [default: 10s, unless --num]"),
    ] = None,
    rate: Annotated[float, typer.Option("--rate", min=0.001, help="Records per second.")] = 100,
    size: Annotated[
        int, typer.Option("--size", min=16, max=BENCH_RECORD_BYTES_MAX, help="Bytes of a record.")
    ] = 100,
    acks: AcksOption = AcksName.ALL,
    codec: CodecOption = CodecName.NONE,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Send one record at a time and wait for it; show how long until it was acknowledged, and until it arrived."""
    from ropewalk.cli.bench_loads import Shape, bench_topic, measure_delays
    from ropewalk.cli.connect import with_client
    from ropewalk.cli.progress import progress
    from ropewalk.cli.workload import Workload
    from ropewalk.client.calls.produce import Acks
    from ropewalk.records.codec import Codec

    shape = Shape(size, acks=Acks(acks.number), codec=Codec[codec.name])
    duration_ms = _duration_ms(duration, default="10s" if count is None else None)

    async def work(client: "Client") -> "Delays":
        clock = client.session.clock
        async with bench_topic(client, topic, partitions=1) as name:
            with progress(clock, "latency") as shown:
                workload = Workload(clock.monotonic_ms(), count=count, duration_ms=duration_ms, rate=rate)
                return await measure_delays(client, name, shape, workload, shown)

    result = with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    if chosen_output(ctx, output) is Output.JSON:
        print_json(result)
        return
    print_table(
        ("RECORDS", "SECONDS", "LOST", "CLIENT CPU"),
        [(f"{result.records:,}", result.seconds, result.lost, f"{result.client_cpu:.0%}")],
    )
    _print_latencies([(_answered(acks), result.acknowledged_ms), ("arrived", result.arrived_ms)])


def _duration_ms(text: str | None, *, default: str | None = None) -> int | None:
    from ropewalk.cli.durations import parse_duration

    said = text if text is not None else default
    if said is None:
        return None
    duration_ms = parse_duration(said, option="--duration")
    if duration_ms == 0:
        raise typer.BadParameter("no time at all is not enough", param_hint="--duration")
    return duration_ms


def _print_throughput(result: "Throughput", output: Output, acks: AcksName = AcksName.ALL) -> None:
    if output is Output.JSON:
        print_json(result)
        return
    print_table(
        ("RECORDS", "MB", "SECONDS", "RECORDS/S", "MB/S", "CLIENT CPU"),
        [
            (
                f"{result.records:,}",
                f"{result.bytes / 1e6:,.1f}",
                result.seconds,
                f"{result.records_per_second:,.0f}",
                f"{result.bytes_per_second / 1e6:,.1f}",
                f"{result.client_cpu:.0%}",
            )
        ],
    )
    _print_latencies([(_answered(acks), result.latency_ms)])


def _answered(acks: AcksName) -> str:
    return "handed over" if acks is AcksName.NONE else "acknowledged"


def _print_latencies(latencies: "list[tuple[str, LatencySummary | None]]") -> None:
    measured = [(name, each) for name, each in latencies if each is not None]
    if measured:
        print()
        print_table(
            ("MILLISECONDS UNTIL", "P50", "P95", "P99", "P99.9", "MAX"),
            [(name, each.p50, each.p95, each.p99, each.p999, each.max) for name, each in measured],
        )
    print("\nClient and broker together: near 100 % of client CPU, this client is the limit.")
