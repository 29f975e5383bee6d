"""The cluster as the services of a node see it: its facts, and the one way to change them.

`propose` and `commit` are given a decision: a function that looks at the image and answers records. On the node that
is the active controller it is decided, committed to the metadata log, applied, and followed by the node (partitions are opened or
closed) before the proposer hears of it. Both are told who wants it, if anybody but the node itself does. Anywhere else it is refused with `NotController`: what a client asked for is
then forwarded whole, and what the node itself wants has a request of its own.
"""

from ropewalk.base.errors import NotController
from ropewalk.broker.cluster.decisions import Decide, Decisions
from ropewalk.broker.cluster.facts import Facts
from ropewalk.broker.cluster.mandate import Mandate
from ropewalk.metadata.image import Image

__all__ = ["Cluster", "Decide"]


class Cluster:
    def __init__(self, facts: Facts, decisions: Decisions | None) -> None:
        """Without `decisions` on a node that never decides."""
        self.facts = facts
        self._decisions = decisions

    @property
    def image(self) -> Image:
        return self.facts.image

    @property
    def decides(self) -> bool:
        """Whether this node is the active controller, as far as it knows."""
        return self._decisions is not None and self._decisions.refusal is None

    async def propose(self, decide: Decide, mandate: Mandate | None) -> None:
        """Decide, commit, apply and follow; raises what `decide` raises."""
        await self._at_the_controller().ask(decide, mandate, until_followed=True)

    async def commit(self, decide: Decide, mandate: Mandate | None) -> None:
        """As `propose`, but the node may not have followed yet: `followed` says when it has."""
        await self._at_the_controller().ask(decide, mandate, until_followed=False)

    async def followed(self) -> None:
        """Return when the node has followed every change that is in the image now."""
        await self.facts.followed()

    def check_decides(self) -> None:
        """Raise what `propose` would where this node does not decide."""
        refusal = self._at_the_controller().refusal
        if refusal is not None:
            raise refusal.with_traceback(None)

    def _at_the_controller(self) -> Decisions:
        if self._decisions is None:
            raise NotController(f"this node is no controller; node {self.image.controller_id} decided last")
        return self._decisions
