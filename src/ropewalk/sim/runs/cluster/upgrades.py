"""Somebody who takes nodes from one version to the next and back, raises the level, and puts nodes into maintenance, at any moment.

What a reader could get wrong
    Both versions are this code: one of the release before knows fewer levels and refuses what a later one brought, as the real one
    would. That it can read all the rest is tried with real wheels (`tests/chaos/upgrade_rounds.py`).
    The operator is careless on purpose: it goes back after the level was raised, and raises it while nodes are away.
"""

import random
from typing import Final

from ropewalk.base.levels import LEVELS, OURS, Software
from ropewalk.metadata.image import Image
from ropewalk.sim.clients.link import LinkLost
from ropewalk.sim.runs.cluster.guide import Guide
from ropewalk.sim.runs.cluster.members import Member, Members
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import unregister_broker, update_features

_BEFORE: Final = LEVELS[-2]
BEFORE: Final = Software(f"{_BEFORE.release[0]}.{_BEFORE.release[1]}.0", _BEFORE.number, _BEFORE.number)
"""The release before this one."""

TIMEOUT_MS: Final = 2500


class Upgrades:
    def __init__(self, guide: Guide, members: Members, image: Image, rng: random.Random) -> None:
        """`image` is the cluster as it is, whoever may know of it."""
        self._guide = guide
        self._workload = guide.workload
        self._members = members
        self._image = image
        self._rng = rng
        self._note = guide.workload.sometimes.note

    async def run(self) -> None:
        deeds = [self._change_version] * 4 + [self._maintain] * 2 + [self._raise_level]
        while not self._workload.is_over:
            await self._guide.pause(1.5)
            self._help_the_refused()
            try:
                await self._rng.choice(deeds)()
            except LinkLost:
                self._guide.doubt()
        self._guide.close()

    def conclude(self) -> None:
        """All nodes are of this version in the end."""
        for member in self._members.by_id.values():
            if member.software != OURS:
                self._install(member, OURS)
                member.machine.kill()

    async def _change_version(self) -> None:
        """Mostly ahead until the level has risen, and mostly back from there on, which is too late."""
        is_raised = self._image.level >= OURS.level_max
        software = OURS if self._rng.random() < (0.3 if is_raised else 0.85) else BEFORE
        others = [member for member in self._members.by_id.values() if member.software != software]
        if not others:
            return
        member = self._rng.choice(others)
        self._install(member, software)
        if self._rng.random() < 0.5:
            await member.stop()
        else:
            member.machine.kill()

    async def _maintain(self) -> None:
        is_on = self._rng.random() < 0.6
        number = self._rng.randrange(len(self._members.broker_names))
        link = await self._guide.connect_to(None)
        request = unregister_broker.UnregisterBrokerRequest(number, keep=True, maintenance=int(is_on))
        answer = await link.send(unregister_broker.API, 0, request)
        if answer.error_code == ErrorCode.FEATURE_UPDATE_FAILED:
            self._note("maintenance was refused before its level")
        elif answer.error_code == ErrorCode.NONE and is_on:
            self._note("a node was put into maintenance")

    async def _raise_level(self) -> None:
        link = await self._guide.connect_to(None)
        update = update_features.FeatureUpdateKey("ropewalk.level", OURS.level_max)
        request = update_features.UpdateFeaturesRequest(TIMEOUT_MS, (update,))
        await link.send(update_features.API, link.newest_version(update_features.API), request)

    def _help_the_refused(self) -> None:
        """Whoever cannot start with the version before, or has left service with it, gets this one, sooner or later."""
        for member in self._members.by_id.values():
            if BEFORE.knows(self._image.level or BEFORE.level_max) or member.software == OURS:
                continue
            node = member.serving
            if node is not None and node.left_service is None:
                continue
            self._note("a node of the version before was refused")
            if self._rng.random() < 0.5:
                self._install(member, OURS)
                member.machine.kill()

    def _install(self, member: Member, software: Software) -> None:
        member.software = software
        self._note(
            "a node changed its version" if software == OURS else "a node went back to the version before"
        )
