"""What should wake somebody, as nodes see it, and what nobody wants to be told of for a while."""

from typing import Final

from msgspec import Struct

from ropewalk.alerts.rules import Rule
from ropewalk.alerts.silences import Silence
from ropewalk.client.administration.membership import Alert, Membership
from ropewalk.console.filled_in import assignments
from ropewalk.console.page import Asked, Done, Page, Shown, Wrong, link
from ropewalk.views.asking import ask_everyone
from ropewalk.views.standing_alerts import (
    RULES_BY_NAME,
    add_silence,
    alerts_in,
    alter_silences,
    make_silence,
    silences,
    state_of,
)
from ropewalk.views.words import parse_span


class ShownAlert(Struct, frozen=True):
    alert: Alert
    node: int
    state: str
    for_ms: int
    rule: Rule | None
    """None where the node that tells of it is of another version."""
    labels: str
    """As they are filled in, one in a line."""


async def show(asked: Asked) -> Shown:
    answers = await ask_everyone(asked.client)
    now_ms = asked.clock.now_ms()
    values: dict[str, object] = {
        "alerts": [
            ShownAlert(
                alert,
                node_id,
                state_of(alert),
                max(0, now_ms - alert.since_ms),
                RULES_BY_NAME.get(alert.name),
                "\n".join(f"{name}={value}" for name, value in sorted(alert.labels.items())),
            )
            for node_id, alert in alerts_in(answers.by_node)
        ],
        "silent": [
            (node_id, str(answer))
            for node_id, answer in sorted(answers.by_node.items())
            if not isinstance(answer, Membership)
        ],
        "silences": [
            (each, "\n".join(f"{name}={value}" for name, value in each.where), each.until_ms - now_ms)
            for each in sorted(await silences(asked.client), key=lambda each: each.until_ms)
            if each.until_ms > now_ms
        ],
        "rules": [(name, name) for name in sorted(RULES_BY_NAME)],
        "said": {each: asked.word(each) for each in ("alert", "where", "time")},
    }
    return Shown("alerts.html", values)


async def silence(asked: Asked) -> Done:
    now_ms = asked.clock.now_ms()
    wanted = make_silence(
        asked.form.text("alert"),
        assignments(asked.form.text("where")),
        parse_span(asked.form.text("time")),
        now_ms=now_ms,
    )
    await add_silence(asked.client, wanted, now_ms=now_ms)
    return Done(link("alerts"), f"nobody is told of {wanted.rule} for {asked.form.text('time')}")


async def end(asked: Asked) -> Done:
    """Of one silence."""
    written = asked.form.raw("silence")
    found: list[Silence] = [each for each in await silences(asked.client) if each.written == written]
    if not found:
        raise Wrong("there is no such silence any more")
    await alter_silences(asked.client, removed=found)
    return Done(link("alerts"), f"{found[0].rule} is told of again")


PAGE: Final = Page(
    name="alerts",
    title="Alerts",
    menu="Alerts",
    key="a",
    show=show,
    actions={"silence": silence, "end": end},
)
