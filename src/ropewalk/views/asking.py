"""Ask every node of a cluster what it knows, and find the one that knows best.

What a reader could get wrong
    Nodes answer at slightly different moments. One that lacks records of the metadata is asked again before it is said to be behind.
    A node that clients cannot reach, as those behind a front end, is not asked; what is known of it is what others say.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import NodeId
from ropewalk.client.administration.membership import ClusterViewer, Membership
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.together import together
from ropewalk.client.connections.address import Address

PATIENCE_MS: Final = 3_000
"""For one node. Who does not answer within this time is said not to."""
_AGAIN_S: Final = 0.3
_AGAIN_COUNT: Final = 4


class Answers(Struct, frozen=True):
    best: Membership
    """From the node that decides, or else from the one that heard last of it."""
    best_address: Address
    by_node: dict[NodeId, Membership | RopewalkError]
    """What each node answered that was asked, or why it did not."""


async def ask_everyone(client: Client) -> Answers:
    """Raises where nobody answers."""
    viewer = ClusterViewer(client)
    known = await _ask(viewer, client, client.session.cluster.bootstrap)
    while True:
        answers = {address: answer for address, answer in known.items() if isinstance(answer, Membership)}
        if not answers:
            raise next(answer for answer in known.values() if isinstance(answer, RopewalkError))
        best_address = max(answers, key=lambda address: _worth(answers[address]))
        best = answers[best_address]
        named = {node.address for node in best.nodes if node.address is not None}
        if named <= set(known):
            break
        known |= await _ask(viewer, client, named - set(known))
    for _ in range(_AGAIN_COUNT):
        behind = [address for address in named if is_behind(known[address], best)]
        if not behind:
            break
        await asyncio.sleep(_AGAIN_S)
        known |= await _ask(viewer, client, behind)
    by_node = {node.node_id: known[node.address] for node in best.nodes if node.address is not None}
    return Answers(best, best_address, by_node)


def is_behind(answer: Membership | RopewalkError, best: Membership) -> bool:
    """Whether a node lacks records of the metadata that the best of all answers has."""
    return (
        isinstance(answer, Membership)
        and answer.metadata_offset is not None
        and best.metadata_offset is not None
        and answer.metadata_offset < best.metadata_offset
    )


def _worth(answer: Membership) -> tuple[int, bool, int, int]:
    """Who decides in the newest epoch knows best; among the others who has heard last."""
    answerer = answer.answerer
    if answerer is None:
        return (0, False, 0, 0)
    return (
        answer.controller_epoch or 0,
        answerer.decides,
        -answerer.age_ms,
        answer.metadata_offset or 0,
    )


async def _ask(
    viewer: ClusterViewer, client: Client, addresses: Iterable[Address]
) -> dict[Address, Membership | RopewalkError]:
    async def ask(address: Address) -> Membership | RopewalkError:
        try:
            return await viewer.describe(at=address, deadline_ms=client.session.deadline_ms(PATIENCE_MS))
        except RopewalkError as error:
            return error

    asked = list(addresses)
    return dict(zip(asked, await together([ask(address) for address in asked]), strict=True))
