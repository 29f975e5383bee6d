"""One topic: who leads its partitions, who reads it, what is set for it; and what can be changed about it."""

from typing import Final

from msgspec import Struct

from ropewalk.base.ids import TopicPartition
from ropewalk.client.administration.admin import Admin, ResourceKind, Setting, SettingSource
from ropewalk.client.calls.together import together
from ropewalk.client.errors import RemoteError
from ropewalk.console.filled_in import confirm, number
from ropewalk.console.page import Asked, Done, NotThere, Page, Shown, Wrong, link
from ropewalk.console.paging import paged
from ropewalk.views import topic_description
from ropewalk.views.offsets import resolve_starts
from ropewalk.views.topic_description import TopicDescription
from ropewalk.views.topic_list import TopicReader, readers_of
from ropewalk.views.words import parse_indexes, parse_where
from ropewalk.wire.error_code import ErrorCode


class ShownSetting(Struct, frozen=True):
    setting: Setting
    is_own: bool
    """Whether it was set for this topic."""
    otherwise: str | None
    """What would apply if it was not set for this topic; None where it is not."""


async def show(asked: Asked) -> Shown:
    name = _name(asked)
    try:
        description, settings, readers = await together(
            [_describe(asked, name), _settings(asked, name), _readers(asked, name)]
        )
    except RemoteError as error:
        if error.code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION):
            raise NotThere(f"there is no topic {name!r}, or you may not see it") from None
        raise
    assert isinstance(description, TopicDescription), "the first of the three"
    assert isinstance(settings, list), "the second"
    assert isinstance(readers, tuple), "the third"
    partitions = paged(description.partitions, asked.query.get("page", ""))
    sizes = await asked.client.log_sizes(
        [TopicPartition(name, each.partition) for each in description.partitions]
    )
    chosen = asked.word("setting")
    values: dict[str, object] = {
        "topic": description,
        "name": name,
        "partitions": partitions,
        "sizes": {at.partition: size for at, size in sizes.items()},
        "size": sum(sizes.values()) if sizes else None,
        "records": sum(
            each.end_offset - each.start_offset
            for each in description.partitions
            if each.end_offset is not None and each.start_offset is not None
        ),
        "leaderless": sum(each.leader is None for each in description.partitions),
        "behind": sum(len(each.isr) < len(each.replicas) for each in description.partitions),
        "readers": paged(readers, "1"),
        "own": [each for each in settings if each.is_own],
        "others": [each for each in settings if not each.is_own],
        "changeable": [
            (each.setting.name, each.setting.name) for each in settings if not each.setting.is_read_only
        ],
        "chosen": chosen,
        "current": next((each.setting.value or "" for each in settings if each.setting.name == chosen), ""),
        "said": {each: asked.form.text(each) for each in ("value", "count", "until", "partitions")},
    }
    return Shown("topic.html", values, name)


async def change(asked: Asked) -> Done:
    """Set one setting, or take it back to what it would be."""
    name, setting = _name(asked), asked.form.text("setting")
    if not setting:
        raise Wrong("choose a setting")
    is_reset = asked.form.text("how") == "reset"
    value = None if is_reset else asked.form.text("value")
    await Admin(asked.client).alter_settings(ResourceKind.TOPIC, name, {setting: value})
    said = f"{setting} is what it is for other topics" if value is None else f"{setting} is {value}"
    return Done(link("topic", name=name), said)


async def grow(asked: Asked) -> Done:
    name = _name(asked)
    added = number(asked.form.text("count"), "partitions to add", least=1)
    before = len((await asked.client.topic(name)).partitions)
    outcomes = await Admin(asked.client).create_partitions({name: before + added})
    for error in outcomes.values():
        if error is not None:
            raise error
    return Done(link("topic", name=name), f"{name} has {before + added} partitions")


async def trim(asked: Asked) -> Done:
    """Remove the oldest records."""
    name = _name(asked)
    where = parse_where(asked.form.text("until"))
    chosen = parse_indexes(said) if (said := asked.form.text("partitions")) else None
    confirm(asked.form.text("typed"), name)
    bounds = await resolve_starts(asked.client, name, chosen, where)
    starts = await Admin(asked.client).delete_records(name, {each.partition: each.offset for each in bounds})
    removed = sum(max(0, starts[each.partition] - each.start) for each in bounds)
    return Done(link("topic", name=name), f"{removed:,} records were removed from {name}")


async def delete(asked: Asked) -> Done:
    name = _name(asked)
    confirm(asked.form.text("typed"), name)
    for error in (await Admin(asked.client).delete_topics([name])).values():
        if error is not None:
            raise error
    return Done(link("topics"), f"{name} was deleted")


async def _describe(asked: Asked, name: str) -> TopicDescription:
    return await topic_description.collect(asked.client, name, all_settings=False)


async def _settings(asked: Asked, name: str) -> list[ShownSetting]:
    found = await Admin(asked.client).describe_settings(
        ResourceKind.TOPIC, name, with_documentation=True, with_inherited=True
    )
    return [
        ShownSetting(
            each, each.source is SettingSource.TOPIC, _otherwise(each) if each.inherited is not None else None
        )
        for each in found
    ]


def _otherwise(setting: Setting) -> str:
    assert setting.inherited is not None, "looked at by who asks"
    name, value = setting.inherited
    said = "nothing" if value is None else value
    return said if name == setting.name else f"{said} ({name})"


async def _readers(asked: Asked, name: str) -> tuple[TopicReader, ...]:
    _, sample = await asked.watcher.seen()
    return readers_of(sample).get(name, ())


def _name(asked: Asked) -> str:
    name = asked.form.raw("name") or asked.query.get("name", "")
    if not name:
        raise NotThere("say which topic, as ?name=NAME")
    return name


PAGE: Final = Page(
    name="topic",
    title="Topic",
    under="topics",
    show=show,
    actions={"change": change, "grow": grow, "trim": trim, "delete": delete},
)
