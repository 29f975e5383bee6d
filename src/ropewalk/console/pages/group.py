"""One group: how far it is behind, where and since when, and who its members are; and what can be taken from it."""

from typing import Final

from ropewalk.base.limits import CONSOLE_DELAYS_MAX
from ropewalk.client.administration.groups import Groups
from ropewalk.client.errors import RemoteError
from ropewalk.console.filled_in import confirm
from ropewalk.console.page import Asked, Done, NotThere, Page, Shown, Wrong, link
from ropewalk.console.paging import paged
from ropewalk.views import group_description
from ropewalk.views.group_delay import measure_delays
from ropewalk.wire.error_code import ErrorCode


async def show(asked: Asked) -> Shown:
    name = name_of(asked)
    try:
        group = await group_description.collect(asked.client, Groups(asked.client), name)
    except RemoteError as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            raise NotThere(f"there is no group {name!r}, or you may not see it") from None
        raise
    delays = await measure_delays(
        asked.client, group.offsets, now_ms=asked.clock.now_ms(), count_max=CONSOLE_DELAYS_MAX
    )
    offsets = sorted(group.offsets, key=lambda each: (-(each.lag or 0), each.topic, each.partition))
    values: dict[str, object] = {
        "group": group,
        "name": name,
        "offsets": paged(offsets, asked.query.get("page", "")),
        "members": paged(group.members, asked.query.get("members", "")),
        "delays": {(at.topic, at.partition): delay_ms for at, delay_ms in delays.items()},
        "delay_ms": max(delays.values()) if delays else None,
        "unread": sum(
            each.lag is not None and each.lag > 0 and each.member is None for each in group.offsets
        ),
        "topics": sorted({each.topic for each in group.offsets if each.committed is not None}),
        "chosen": asked.form.all("topic"),
    }
    return Shown("group.html", values, name)


async def forget(asked: Asked) -> Done:
    """Delete offsets of some topics."""
    name, topics = name_of(asked), set(asked.form.all("topic"))
    if not topics:
        raise Wrong("choose the topics whose offsets are to go")
    groups = Groups(asked.client)
    chosen = [each for each in await groups.committed(name) if each.topic in topics]
    if not chosen:
        raise Wrong(f"{name} has committed no offsets of these topics")
    for error in (await groups.delete_offsets(name, chosen)).values():
        if error is not None:
            raise error
    said = f"{name} has no offsets of {', '.join(sorted(topics))} any more"
    left = await groups.committed(name)
    return Done(link("group", name=name) if left else link("groups"), said)


async def delete(asked: Asked) -> Done:
    name = name_of(asked)
    confirm(asked.form.text("typed"), name)
    for error in (await Groups(asked.client).delete([name])).values():
        if error is not None:
            raise error
    return Done(link("groups"), f"{name} was deleted")


def name_of(asked: Asked) -> str:
    name = asked.form.raw("name") or asked.query.get("name", "")
    if not name:
        raise NotThere("say which group, as ?name=NAME")
    return name


PAGE: Final = Page(
    name="group",
    title="Group",
    under="groups",
    show=show,
    actions={"forget": forget, "delete": delete},
)
