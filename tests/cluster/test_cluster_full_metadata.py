"""The home of the metadata has no room: a passing state for everybody. Nobody ends, nobody gives up, and all goes on by itself."""

import asyncio
from base64 import b64decode

import pytest

from ropewalk.sim.machines.etcd_state import Body, EtcdState
from tests.cluster.nodes import Nodes, in_a_cluster
from tests.cluster.test_cluster_leaders import create

SESSION = "node.session.timeout.ms=1500"


def full_after_the_seat(state: EtcdState, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else's data fill etcd right after the next controller has written its key."""
    original = EtcdState.txn

    def txn(self: EtcdState, request: Body) -> Body:
        answer = original(self, request)
        operations = request.get("success")
        assert isinstance(operations, list)
        keys = [b64decode(each["request_put"]["key"]) for each in operations if "request_put" in each]
        if answer.get("succeeded") and any(key.endswith(b"controller") for key in keys):
            self.is_full = True
        return answer

    monkeypatch.setattr(EtcdState, "txn", txn)
    assert not state.is_full


def test_a_seat_that_was_taken_while_etcd_ran_full_decides_when_there_is_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(nodes: Nodes) -> None:
        state = nodes.etcd.state
        former = nodes.controller()
        assert former is not None
        full_after_the_seat(state, monkeypatch)
        nodes.members[former].kill()
        await nodes.until(lambda: state.is_full)
        monkeypatch.undo()
        await asyncio.sleep(10)
        assert nodes.controller() is None
        state.is_full = False
        await nodes.until(lambda: nodes.controller() is not None)
        await create(nodes, "made-afterwards")

    in_a_cluster(story, SESSION, with_etcd=True)


def test_a_fenced_broker_goes_on_while_etcd_is_full_and_serves_when_there_is_room() -> None:
    async def story(nodes: Nodes) -> None:
        state = nodes.etcd.state
        controller = nodes.controller()
        assert controller is not None
        victim = next(node_id for node_id in nodes.members if node_id != controller)
        machine = nodes.members[victim].machine
        machine.pause()
        await nodes.until(lambda: not nodes.is_serving(victim, seen_by=controller))
        state.is_full = True
        machine.resume()
        await asyncio.sleep(20)
        assert machine.is_running
        assert not nodes[victim].failed.done()
        membership = nodes[victim]._parts.membership
        assert membership.trouble is None, "the controller is heard all the while"
        assert "no space left" in (membership.standing or "")
        state.is_full = False
        await nodes.until(lambda: nodes.is_serving(victim, seen_by=controller))
        await nodes.until(lambda: membership.standing is None)

    in_a_cluster(story, SESSION, with_etcd=True)


def test_a_node_that_starts_while_etcd_is_full_waits_for_room() -> None:
    async def story(nodes: Nodes) -> None:
        nodes.etcd.state.is_full = True
        starting = asyncio.ensure_future(nodes.add(3).start())
        await asyncio.sleep(20)
        assert not starting.done()
        nodes.etcd.state.is_full = False
        await starting
        await nodes.until(lambda: nodes.is_serving(3, seen_by=0))

    in_a_cluster(story, SESSION, with_etcd=True)


def test_a_cluster_is_created_once_etcd_has_room() -> None:
    async def story(nodes: Nodes) -> None:
        nodes.etcd.state.is_full = True
        starting = [asyncio.ensure_future(nodes.add(node_id).start()) for node_id in range(2)]
        await asyncio.sleep(20)
        assert not any(each.done() for each in starting)
        nodes.etcd.state.is_full = False
        await asyncio.gather(*starting)

    in_a_cluster(story, SESSION, nodes=0, with_etcd=True)


def test_a_fenced_broker_goes_on_while_the_disk_of_the_local_metadata_is_full() -> None:
    async def story(nodes: Nodes) -> None:
        platters = nodes.members[0].machine.platters
        room_bytes = platters.capacity_bytes
        machine = nodes.members[1].machine
        machine.pause()
        await nodes.until(lambda: not nodes.is_serving(1, seen_by=0))
        platters.capacity_bytes = 0
        machine.resume()
        await asyncio.sleep(20)
        assert machine.is_running
        assert nodes.members[0].machine.is_running
        assert not nodes[1].failed.done()
        platters.capacity_bytes = room_bytes
        await nodes.until(lambda: nodes.is_serving(1, seen_by=0))

    in_a_cluster(story, SESSION)
