"""Alerts as every node sees its own and the controller the cluster's, and silences, which keep somebody from being told of them."""

from collections.abc import Mapping, Sequence

from ropewalk.alerts.silences import Silence, parse_silence
from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import NodeId
from ropewalk.client.administration.admin import Admin, ResourceKind
from ropewalk.client.administration.membership import Alert, Membership
from ropewalk.client.calls.client import Client
from ropewalk.metadata.settings.alerts import SILENCES


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
