"""The replicas on one node: each in the role that the image gives it, over logs that are made durable together.

What the image says before it has this process's registration is about a former process; until then nothing is hosted. What
is on disk is removed only where committed metadata says that it is deleted or others' to keep.
"""

import random
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol, TypeVarTuple

from ropewalk.metadata.image import Image, Partition, Topic
from ropewalk.metadata.settings.applied import AppliedSettings
from ropewalk.replication.leader import LeaderSettings, Outcome, Proposal
from ropewalk.replication.stragglers import Stragglers
from ropewalk.sim.runs.cores.following import Following
from ropewalk.sim.runs.cores.leading import Host, Leading
from ropewalk.sim.runs.cores.machine import Key, Machine
from ropewalk.sim.runs.cores.replica_log import ReplicaLog

Ts = TypeVarTuple("Ts")

ALTERATION_US: Final = 1_500_000
"""After so long without an answer nobody knows what became of a proposal."""


class ReplicaHost(Host, Protocol):
    machine: Machine
    image: Image
    settings: AppliedSettings
    rng: random.Random

    def after(self, delay_us: int, action: Callable[[*Ts], None], *arguments: *Ts) -> None: ...
    def note_role(self, what: str, key: Key, leader_epoch: int) -> None: ...


class Replicas:
    def __init__(self, host: ReplicaHost, *, lag_ms_max: int, straggler_ms: int | None) -> None:
        self._host = host
        self._machine = host.machine
        self._lag_ms_max, self._straggler_ms = lag_ms_max, straggler_ms
        self._stragglers = Stragglers()
        self._dirty: dict[Key, None] = {}
        self._is_syncing = False
        self._wanting: set[Key] = set()
        """Those with `flush=os` that wait for the disk until they are marked."""
        self._waning: dict[Key, int] = {}
        """Marked ones with `flush=group`, and what must be durable for the mark to go."""
        self.roles: dict[Key, Leading | Following] = {}
        self.is_in = False
        """This process has registered, and its image says so."""

    def refresh(self, keys: Iterable[Key] | None) -> None:
        """Put what the image says of these partitions into effect; None means all."""
        host = self._host
        self._sweep()
        if host.broker_epoch < 0:
            return  # what it says about this node is about a former process of it
        if not self.is_in:
            self.is_in = True
            self._machine.damaged.clear()
            keys = None
        for key in self._all_keys() if keys is None else keys:
            topic = host.image.topics_by_id.get(key[0])
            if topic is None:
                continue
            partition = topic.partitions[key[1]]
            if host.node_id in partition.holders:
                self._put(key, topic, partition)
            elif key in self._machine.logs:
                self._drop(key)

    def tick(self) -> None:
        self._unmark()
        for role in list(self.roles.values()):
            role.tick()

    def retire(self) -> None:
        for role in self.roles.values():
            if isinstance(role, Leading):
                role.retire()

    def proposals(self) -> list[tuple[Key, Proposal]]:
        """What the leaders here want; what they asked for and was not answered in time is in doubt from here on."""
        host = self._host
        brokers, now_us = host.image.brokers, host.now_us
        leading = [(key, role) for key, role in self.roles.items() if isinstance(role, Leading)]
        if self._straggler_ms is not None:
            self._stragglers.sweep([role.core for _, role in leading], now_us // 1000)
        wanted: list[tuple[Key, Proposal]] = []
        for key, role in leading:
            if role.proposed is not None and now_us - role.proposed_at_us > ALTERATION_US:
                host.sometimes.note("a change of the ISR stayed unanswered")
                role.on_outcome(role.proposed, Outcome.UNKNOWN)
            proposal = role.propose(brokers)
            if proposal is not None:
                wanted.append((key, proposal))
        return wanted

    def sync(self, key: Key) -> None:
        if not self._machine.logs[key].flushes:
            return
        self._dirty[key] = None
        if not self._is_syncing:
            self._sync()

    def write_back(self) -> None:
        """What nobody syncs the operating system writes out when it likes."""
        for log in self._machine.logs.values():
            if not log.flushes and self._host.rng.random() < 0.1:
                log.durable_end = log.end

    def _all_keys(self) -> list[Key]:
        keys = {
            (topic.topic_id, partition.index): None
            for topic in self._host.image.topics.values()
            for partition in topic.partitions
        }
        return list(keys | dict.fromkeys(self.roles) | dict.fromkeys(self._machine.logs))

    def _sweep(self) -> None:
        """Remove what a committed deletion has orphaned."""
        for key in [key for key in self._machine.logs if self._host.image.was_deleted(key[0])]:
            self._drop(key)

    def _drop(self, key: Key) -> None:
        self._host.judge.on_dropped(key, self._host.node_id)
        role = self.roles.pop(key, None)
        if isinstance(role, Leading):
            role.retire()
        del self._machine.logs[key]
        self._machine.marked.discard(key)
        self._wanting.discard(key)
        self._waning.pop(key, None)

    def _heed(self, key: Key, log: ReplicaLog, flush: str) -> None:
        """What counts from here on. The rules are those of `broker/partitions/page_cache_marks.py`."""
        is_marked = key in self._machine.marked
        if flush == "os":
            self._waning.pop(key, None)
            if is_marked:
                log.count_all()
            elif key not in self._wanting:
                self._wanting.add(key)
                sync_us = self._machine.sync_us
                self._host.after(sync_us + self._host.rng.randrange(sync_us), self._mark, key, log)
            return
        self._wanting.discard(key)
        if not log.flushes:
            log.flushes = True
            self.sync(key)
        if is_marked and key not in self._waning:
            self._waning[key] = log.end

    def _mark(self, key: Key, log: ReplicaLog) -> None:
        """The mark is on disk."""
        if self._machine.logs.get(key) is not log:
            return
        self._machine.marked.add(key)
        if key not in self._wanting:
            self._waning[key] = log.end  # it is set to group again
            return
        self._wanting.discard(key)
        log.count_all()
        role = self.roles.get(key)
        if role is not None:
            role.on_synced()

    def _unmark(self) -> None:
        for key, until in list(self._waning.items()):
            log = self._machine.logs[key]
            if log.durable_end >= min(until, log.end):
                del self._waning[key]
                self._machine.marked.discard(key)
                self._host.sometimes.note("a log was synced under group, and its mark went")

    def _put(self, key: Key, topic: Topic, partition: Partition) -> None:
        """In the role that it has, or another over the same log."""
        host, role = self._host, self.roles.get(key)
        log = self._machine.logs.get(key)
        if log is None:
            log = self._machine.logs[key] = ReplicaLog(flushes=True)
        self._heed(key, log, host.settings.of_topic(topic).flush)
        is_same = role is not None and role.core.leader_epoch == partition.leader_epoch
        leads = partition.leader == host.node_id
        if isinstance(role, Leading) and leads and is_same:
            role.on_facts(partition, self._settings_of(topic, partition))
            return
        if isinstance(role, Following) and not leads and is_same and role.leader == partition.leader:
            return
        if isinstance(role, Leading):
            role.retire()
        host.note_role("leads" if leads else "follows", key, partition.leader_epoch)
        self.roles[key] = (
            Leading(host, key, log, partition, self._settings_of(topic, partition))
            if leads
            else Following(host, key, log, partition)
        )

    def _settings_of(self, topic: Topic, partition: Partition) -> LeaderSettings:
        return LeaderSettings(
            isr_count_min=self._host.settings.minimum_in_sync(topic, partition),
            lag_ms_max=self._lag_ms_max,
            straggler_ms=self._straggler_ms,
        )

    def _sync(self) -> None:
        """One group commit for all that is dirty; what is written meanwhile waits for the next."""
        logs: Mapping[Key, ReplicaLog] = self._machine.logs
        covered = [(key, logs[key], logs[key].end, logs[key].cut_count) for key in self._dirty if key in logs]
        self._dirty = {}
        self._is_syncing = bool(covered)
        if covered:
            sync_us = self._machine.sync_us
            self._host.after(sync_us + self._host.rng.randrange(sync_us), self._synced, covered)

    def _synced(self, covered: list[tuple[Key, ReplicaLog, int, int]]) -> None:
        for key, log, end, cut_count in covered:
            if self._machine.logs.get(key) is not log:
                continue
            if log.cut_count != cut_count:
                self._dirty[key] = None  # it is not the same log any more that was written out
                continue
            log.durable_end = max(log.durable_end, end)
            role = self.roles.get(key)
            if role is not None:
                role.on_synced()
        self._sync()
