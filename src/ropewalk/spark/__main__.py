"""`python -m ropewalk.spark`: the process in which a pipeline runs, and what `ropewalk pipeline` asks of it.

What a reader could get wrong
    Spark is imported when a job is run and not before: lists and refusals come at once.
    Words that are none of the options here are settings of the kind of pipeline, and read as such.
"""

import os
import sys
import traceback
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec
import structlog

from ropewalk.base.errors import RopewalkError
from ropewalk.spark.pipelines.catalogue import PIPELINES, pipeline
from ropewalk.spark.pipelines.definition import DEFAULT_FILE, Job, Table, define, parse_file
from ropewalk.spark.pipelines.listing import (
    print_description,
    print_kinds_and_jobs,
    print_offsets,
    print_statuses,
)
from ropewalk.spark.pipelines.status import State, Status, default_directory, read_statuses
from ropewalk.spark.refusals import PipelineFailed, Refusal, WrongUse

EXIT_FAILED: Final = 1
EXIT_WRONG_USE: Final = 2
EXIT_INTERRUPTED: Final = 130


def main(arguments: Sequence[str]) -> int:
    options, words = _parser().parse_known_args(arguments)
    if words and options.command not in ("run", "offsets"):
        print(f"ropewalk: there is no option {words[0]}", file=sys.stderr)
        return EXIT_WRONG_USE
    try:
        match options.command:
            case "ls":
                print_kinds_and_jobs(_jobs(options), as_json=options.json)
            case "describe":
                print_description(options.name, _jobs(options), as_json=options.json)
            case "status":
                print_statuses(_statuses(options), options.name, as_json=options.json)
            case "offsets":
                _offsets(options, words)
            case _:
                return _run(options, words)
    except (Refusal, RopewalkError) as error:
        if getattr(options, "verbose", False):
            traceback.print_exc()
        print(_told(error, as_json=options.json), file=sys.stderr)
        return EXIT_WRONG_USE if isinstance(error, WrongUse) else EXIT_FAILED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return 0


def _told(error: Exception, *, as_json: bool) -> str:
    """On one line, in the manner of the command line."""
    text = " ".join(str(error).split())
    log = error.log if isinstance(error, PipelineFailed) else None
    step = None if log is None else f"Spark's log is {log}"
    if not as_json:
        return f"ropewalk: {text}; {step}" if step else f"ropewalk: {text}"
    return msgspec.json.encode({"error": type(error).__name__, "message": text, "next": step}).decode()


def _run(options: Namespace, words: Sequence[str]) -> int:
    from ropewalk.spark.pipelines.running import Watching, run
    from ropewalk.spark.pipelines.showing import summary

    # What is logged goes where Spark's log goes; stdout is for results.
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    job = _job(options, words)
    outcome = run(
        job,
        pipeline(job.kind),
        Watching(
            state_directory=_state(options),
            metrics_file=options.metrics,
            metrics_port=options.metrics_port,
            verbose=options.verbose,
            quiet=options.json,
        ),
    )
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(outcome), indent=2).decode())
    else:
        print(f"{job.name}: {outcome.state.value}, {summary(outcome.progress, outcome.seconds)}")
    return EXIT_INTERRUPTED if job.once and outcome.state is State.STOPPED else 0


def _offsets(options: Namespace, words: Sequence[str]) -> None:
    from ropewalk.spark.pipelines.offsets import move, parse_moves, show

    if options.set and options.from_table:
        raise WrongUse("say --set or --from-table, one of them")
    job, state = _job(options, words), _state(options)
    made = pipeline(job.kind)
    if options.set or options.from_table:
        print_offsets(
            move(job, made, state, parse_moves(options.set) if options.set else None), as_json=options.json
        )
    else:
        print_offsets(show(job, made, state), as_json=options.json)


def _job(options: Namespace, words: Sequence[str]) -> Job:
    return define(
        options.name,
        _jobs(options),
        _given(options),
        words,
        name=options.job_name,
        settings_of=lambda kind: pipeline(kind).Settings,
        bootstrap=os.environ.get("ROPEWALK_BOOTSTRAP"),
        state=_state(options),
        environment=os.environ,
    )


def _given(options: Namespace) -> Table:
    return Table(
        bootstrap=options.bootstrap,
        topics=options.topic,
        pattern=options.pattern,
        source=_pairs(options.source, "--source"),
        checkpoint=options.checkpoint,
        once=options.once,
        interval=options.interval,
        master=options.master,
        remote=options.remote,
        conf={**_pairs(options.conf, "--conf"), **({"spark.ui.enabled": "true"} if options.ui else {})},
    )


def _jobs(options: Namespace) -> dict[str, Table]:
    """Those of the file; of the usual one only if it is there."""
    path = options.file or DEFAULT_FILE
    try:
        with open(path, encoding="utf-8") as file:
            return parse_file(file.read(), path)
    except FileNotFoundError:
        if options.file is None:
            return {}
        raise WrongUse(f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUse(f"{path} cannot be read: {error}") from None


def _statuses(options: Namespace) -> list[Status]:
    """Of this machine; with brokers named, of every machine whose jobs they have heard of."""
    here = read_statuses(_state(options), options.name)
    bootstrap = options.bootstrap or os.environ.get("ROPEWALK_BOOTSTRAP")
    if not bootstrap:
        return here
    from ropewalk.spark.pipelines.status_topic import heard_of, together

    try:
        heard = heard_of(bootstrap, datetime.now(UTC))
    except WrongUse as error:
        if options.bootstrap:
            raise
        print(f"ropewalk: jobs of this machine only: {error}", file=sys.stderr)
        return here
    return together(here, [each for each in heard if options.name in (None, each.name)])


def _state(options: Namespace) -> str:
    return os.path.abspath(options.state) if options.state else default_directory(os.environ)


def _pairs(given: Sequence[str] | None, option: str) -> dict[str, str | int | bool]:
    pairs: dict[str, str | int | bool] = {}
    for each in given or ():
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise WrongUse(f"{option} {each!r} is not NAME=VALUE")
        pairs[name] = value
    return pairs


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="python -m ropewalk.spark", description="Pipelines over topics, on Spark.", allow_abbrev=False
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, purpose in (
        ("ls", "kinds and jobs"),
        ("describe", "what a kind or a job is told"),
        ("status", "how jobs are that have run on this machine, or that the cluster has heard of"),
        ("offsets", "how far a job's output has come; move that"),
        ("run", "run a job, or a kind with what is said here"),
    ):
        command = commands.add_parser(name, help=purpose, allow_abbrev=False)
        command.add_argument("--json", action="store_true", help="for programs")
        if name != "ls":
            command.add_argument(
                "name", metavar="NAME", nargs="?" if name == "status" else None, help="a job or a kind"
            )
        if name != "status":
            command.add_argument(
                "--file", metavar="FILE", help=f"jobs, as TOML [{DEFAULT_FILE}, if it is there]"
            )
        if name in ("status", "run", "offsets"):
            command.add_argument("--state", metavar="DIR", help="where the status of jobs is kept")
        if name in ("status", "run", "offsets"):
            command.add_argument("--bootstrap", "-b", metavar="HOST:PORT,…")
    for name in ("run", "offsets"):
        _add_run_options(commands.choices[name])
    moving = commands.choices["offsets"]
    moving.add_argument("--set", action="append", metavar="TOPIC:PARTITION=OFFSET", help="move to there")
    moving.add_argument("--from-table", action="store_true", help="move to where the table's rows end")
    return parser


def _add_run_options(run: ArgumentParser) -> None:
    run.epilog = f"Kinds: {', '.join(PIPELINES)}. Other options are settings of the kind: see describe."
    run.add_argument("--name", dest="job_name", metavar="NAME", help="the job's own name [as asked for]")
    run.add_argument("--topic", "-t", action="append", metavar="TOPIC")
    run.add_argument("--pattern", metavar="REGEX", help="all topics that it matches as a whole")
    run.add_argument("--source", action="append", metavar="NAME=VALUE", help="an option of the source")
    run.add_argument(
        "--checkpoint", metavar="DIR", help="where progress is kept [below the target, or below --state]"
    )
    run.add_argument(
        "--once", action="store_const", const=True, help="end when everything is read that is there"
    )
    run.add_argument("--interval", metavar="TIME", help='from batch to batch ["5 seconds"]')
    run.add_argument("--master", metavar="MASTER", help="[local[*]]")
    run.add_argument("--remote", metavar="sc://HOST:PORT", help="a Connect server")
    run.add_argument("--conf", action="append", metavar="NAME=VALUE", help="a setting of the Spark session")
    run.add_argument("--ui", action="store_true", help="serve Spark's own pages while it runs")
    run.add_argument("--metrics", metavar="FILE", help="keep metrics in this file, as Prometheus' text")
    run.add_argument("--metrics-port", metavar="PORT", type=int, help="serve them on the loopback")
    run.add_argument("--verbose", action="store_true", help="Spark's log on stderr, and stacks")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
