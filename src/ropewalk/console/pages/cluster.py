"""The nodes of the cluster: who decides, what each carries, which could be stopped now; and what is hot."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import NodeId
from ropewalk.base.limits import TROUBLES_NAMED_MAX
from ropewalk.client.administration.balancing import Balancing, Plan
from ropewalk.client.administration.membership import Membership, Node
from ropewalk.console.filled_in import number
from ropewalk.console.page import Asked, Done, Page, Shown, Wrong, link
from ropewalk.views import cluster_state
from ropewalk.views.cluster_state import ClusterState, NodeRow
from ropewalk.views.upgrade_state import upgrade_state, would_be_below


class ShownNode(Struct, frozen=True):
    row: NodeRow
    node: Node
    version: str
    share: float | None
    """Of what the cluster carries; None where nobody tells."""
    needed_by: tuple[str, ...]
    """Why it should not be stopped now: partitions that would have too few in sync, some of them."""
    needed_count: int
    behind: int | None
    """Records of the metadata that it lacks; None where it does not tell."""


async def show(asked: Asked) -> Shown:
    state = await cluster_state.collect(asked.client)
    plan, no_plan = await _plan(asked)
    upgrade = upgrade_state(state)
    versions = {each.node: each.version for each in upgrade.nodes}
    shares = {} if plan is None else {each.node: each.before for each in plan.shares}
    values: dict[str, object] = {
        "state": state,
        "summary": state.summary(),
        "upgrade": upgrade,
        "nodes": [_shown(row, state, versions, shares) for row in state.nodes()],
        "plan": plan,
        "no_plan": no_plan,
    }
    return Shown("cluster.html", values)


async def maintenance(asked: Asked) -> Done:
    node = number(asked.form.text("node"), "node")
    how = asked.form.text("how")
    if how not in ("on", "off"):
        raise Wrong("say on or off")
    await Balancing(asked.client).set_maintenance(NodeId(node), is_on=how == "on")
    said = (
        f"node {node} is in maintenance: others lead what it led"
        if how == "on"
        else f"node {node} leads again"
    )
    return Done(link("cluster"), said)


async def _plan(asked: Asked) -> tuple[Plan | None, str]:
    """What nodes carry, or why that is not known: it takes another right than the rest of the page."""
    try:
        return await Balancing(asked.client).balance(validate_only=True), ""
    except RopewalkError as error:
        return None, str(error)


def _shown(
    row: NodeRow, state: ClusterState, versions: Mapping[int, str], shares: Mapping[int, float]
) -> ShownNode:
    node = next(each for each in state.membership.nodes if each.node_id == row.node)
    below = would_be_below(state, node.node_id)
    answer = state.answers.get(node.node_id)
    best, known = state.membership.metadata_offset, None
    if isinstance(answer, Membership):
        known = answer.metadata_offset
    return ShownNode(
        row,
        node,
        versions.get(row.node, ""),
        shares.get(row.node),
        tuple(below[:TROUBLES_NAMED_MAX]),
        len(below),
        None if best is None or known is None else max(0, best - known),
    )


PAGE: Final = Page(
    name="cluster",
    title="Cluster",
    menu="Cluster",
    key="n",
    show=show,
    actions={"maintenance": maintenance},
)
