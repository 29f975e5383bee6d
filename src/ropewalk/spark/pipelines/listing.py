"""Kinds, jobs and their status, printed for people or as JSON for programs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from ropewalk.spark.pipelines.catalogue import PIPELINES, pipeline
from ropewalk.spark.pipelines.definition import Table
from ropewalk.spark.pipelines.nearest import nearest
from ropewalk.spark.pipelines.settings import Described, describe_settings
from ropewalk.spark.pipelines.status import Status
from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.storage import shown

if TYPE_CHECKING:
    from ropewalk.spark.pipelines.offsets import Report


def print_kinds_and_jobs(jobs: Mapping[str, Table], *, as_json: bool) -> None:
    kinds = {kind: pipeline(kind).summary for kind in PIPELINES}
    if as_json:
        listed = [
            *(
                {"name": kind, "is": "kind", "kind": kind, "summary": summary}
                for kind, summary in kinds.items()
            ),
            *(
                {"name": name, "is": "job", "kind": job.kind, "summary": _reads(job)}
                for name, job in jobs.items()
            ),
        ]
        _print_json(listed)
        return
    rows = [(kind, "kind", summary) for kind, summary in kinds.items()]
    rows += [(name, job.kind or "-", _reads(job)) for name, job in jobs.items()]
    _print_table(("NAME", "KIND", "WHAT IT DOES"), rows)


def print_description(name: str, jobs: Mapping[str, Table], *, as_json: bool) -> None:
    """A kind with its settings, or a job with what it has set."""
    job = jobs.get(name)
    kind = name if job is None else job.kind
    if kind is None:
        raise WrongUse(f'[pipeline.{name}] does not say what it is: add kind = "archive" or another')
    if kind not in PIPELINES:
        raise WrongUse(f"there is no kind and no job {kind!r}{nearest(kind, [*PIPELINES, *jobs])}")
    made = pipeline(kind)
    settings = describe_settings(made.Settings)
    if as_json:
        given = None if job is None else {"job": _shown(job)}
        _print_json(
            {"name": name, "kind": kind, "summary": made.summary, "settings": settings, **(given or {})}
        )
        return
    print(f"{name}: {made.summary}\n")
    if job is not None:
        said = [(each, value) for each, value in _shown(job).items() if value not in (None, {}, [])]
        _print_table(("SET", "TO"), [(each, _text(value)) for each, value in said if each != "settings"])
        print()
    set_here = {} if job is None else job.settings
    rows = [(each.name, _value(each, set_here), each.meaning) for each in settings]
    _print_table(("SETTING", "VALUE" if job is not None else "DEFAULT", "MEANING"), rows)


def print_statuses(statuses: Sequence[Status], name: str | None, *, as_json: bool) -> None:
    if name is not None and not statuses:
        raise WrongUse(
            f"no job {name!r} has run here; --state names another directory, --bootstrap a cluster that may have heard of it"
        )
    if as_json:
        _print_json(list(statuses))
        return
    rows = [
        (
            each.name,
            each.kind,
            each.state.value,
            each.host or "-",
            str(each.pid),
            _text(each.progress.batch),
            f"{each.progress.rows:,}",
            _number(each.progress.written_rows),
            _number(each.progress.unreadable_rows),
            _number(each.progress.late_rows),
            f"{each.progress.rows_per_second:,.0f}",
            _text(each.progress.lag),
            each.heard_at or each.updated_at,
        )
        for each in statuses
    ]
    _print_table(
        (
            "NAME",
            "KIND",
            "STATE",
            "HOST",
            "PID",
            "BATCH",
            "READ",
            "WRITTEN",
            "BAD",
            "LATE",
            "ROWS/S",
            "LAG",
            "AS OF",
        ),
        rows,
    )
    for each in statuses:
        if each.error is not None:
            print(f"\n{each.name}: {each.error}")
            if each.log is not None:
                print(f"Spark's log: {each.log}")
        elif each.last_error is not None:
            print(f"\n{each.name} has failed before, at {each.last_error_at}: {each.last_error}")


def _shown(job: Table) -> dict[str, object]:
    """As the file has it, without what is secret."""
    return {**msgspec.to_builtins(job), "storage": shown(job.storage)}


def print_offsets(report: "Report", *, as_json: bool) -> None:
    if as_json:
        _print_json(report)
        return
    columns = ("PARTITION", "TOPIC ID", "NEXT OFFSET", "PUT BACK TO", "MOVED TO")
    rows = [
        (each.partition, *map(_text, (each.topic_id, each.kept, each.put_back_to, each.moved_to)))
        for each in report.standings
    ]
    used = [at for at in range(len(columns)) if at < 3 or any(row[at] != "-" for row in rows)]
    _print_table([columns[at] for at in used], [[row[at] for at in used] for row in rows])
    for notice in report.notices:
        print(notice)


def _reads(job: Table) -> str:
    return (
        f"topics {', '.join(job.topics)}"
        if job.topics
        else f"topics like {job.pattern}"
        if job.pattern
        else "-"
    )


def _value(setting: Described, set_here: Mapping[str, object]) -> str:
    if setting.name in set_here:
        return _text(set_here[setting.name])
    return "required" if setting.required else _text(setting.default)


def _text(value: object) -> str:
    match value:
        case None | "" | [] | {}:
            return "-"
        case bool():
            return "true" if value else "false"
        case list():
            return ",".join(map(str, value))
        case dict():
            return ", ".join(f"{name}={_text(each)}" for name, each in value.items())
        case _:
            return str(value)


def _number(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def _print_json(value: object) -> None:
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def _print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    for line in (columns, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
