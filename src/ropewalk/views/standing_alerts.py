"""Alerts as every node sees its own and the controller the cluster's, and silences, which keep somebody from being told of them."""

from collections.abc import Mapping, Sequence
from typing import Final

from ropewalk.alerts.declared import RULES
from ropewalk.alerts.rules import Rule
from ropewalk.alerts.silences import Silence, parse_silence
from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import NodeId
from ropewalk.base.limits import SILENCE_MS_MAX, SILENCES_MAX
from ropewalk.client.administration.admin import Admin, ResourceKind
from ropewalk.client.administration.membership import Alert, Membership
from ropewalk.client.calls.client import Client
from ropewalk.metadata.settings.alerts import SILENCES

RULES_BY_NAME: Final[Mapping[str, Rule]] = {rule.name: rule for rule in RULES}


def alerts_in(answers: Mapping[NodeId, Membership | RopewalkError]) -> list[tuple[NodeId, Alert]]:
    """With the node that tells of each: what fires first."""
    found = [
        (node_id, alert)
        for node_id, answer in answers.items()
        if isinstance(answer, Membership) and answer.answerer is not None
        for alert in answer.answerer.alerts
    ]
    return sorted(
        found, key=lambda each: (state_of(each[1]) != "firing", each[1].severity, each[1].name, each[0])
    )


def state_of(alert: Alert) -> str:
    return "silenced" if alert.silenced_until_ms is not None else alert.state


class NotSilenced(RopewalkError):
    """An alert that there is not, a time that is too long, or one silence too many."""


def make_silence(name: str, labels: Mapping[str, str], duration_ms: int, *, now_ms: int) -> Silence:
    if name not in RULES_BY_NAME:
        raise NotSilenced(f"there is no alert {name!r}")
    if not 0 < duration_ms <= SILENCE_MS_MAX:
        raise NotSilenced("a silence takes between 1 ms and 30 days")
    return Silence(name, tuple(sorted(labels.items())), now_ms + duration_ms)


async def add_silence(client: Client, wanted: Silence, *, now_ms: int) -> None:
    """And take away those that are over."""
    there = await silences(client)
    over = [each for each in there if each.until_ms <= now_ms]
    if len(there) - len(over) >= SILENCES_MAX:
        raise NotSilenced(f"there are {SILENCES_MAX} silences already; take some away")
    await alter_silences(client, added=[wanted], removed=over)


async def silences(client: Client) -> list[Silence]:
    """As the cluster has them, those that are over among them."""
    node_id = (await client.metadata()).brokers[0].node_id
    settings = await Admin(client).describe_settings(ResourceKind.BROKER, str(node_id))
    written = next((each.value for each in settings if each.name == SILENCES), None)
    return [parse_silence(item) for item in written.split(",")] if written else []


async def alter_silences(
    client: Client, *, added: Sequence[Silence] = (), removed: Sequence[Silence] = ()
) -> None:
    await Admin(client).alter_list(
        ResourceKind.BROKER,
        "",
        SILENCES,
        added=[each.written for each in added],
        removed=[each.written for each in removed],
    )
