"""Users at the Kafka door: set, described and removed, by whichever node is asked."""

import asyncio
from typing import cast

import pytest

from ropewalk.base.ids import NodeId
from ropewalk.broker.peers.calls.forward import wrapped
from ropewalk.kafka.caller import Caller, Holdable
from ropewalk.kafka.peer.handlers import forward
from ropewalk.kafka.served import ServedApi
from ropewalk.metadata.image import Image
from ropewalk.security.identity import Identity
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import alter_user_scram_credentials as alter
from ropewalk.wire.messages import describe_user_scram_credentials as describe
from ropewalk.wire.peer.forward import API as FORWARD
from ropewalk.wire.types import Message
from tests.kafka.door import Door, at_the_door

SALT = b"sixteen bytes or"


def upsertion(name: str, mechanism: int = 1, iterations: int = 4096) -> alter.ScramCredentialUpsertion:
    return alter.ScramCredentialUpsertion(name, mechanism, iterations, SALT, b"p" * (32 * mechanism))


async def change(
    door: Door,
    *upsertions: alter.ScramCredentialUpsertion,
    deletions: tuple[alter.ScramCredentialDeletion, ...] = (),
) -> dict[str, int]:
    request = alter.AlterUserScramCredentialsRequest(deletions, upsertions)
    response = await door.call(alter.API, 0, request)
    assert all(bool(result.error_message) is bool(result.error_code) for result in response.results)
    return {result.user: result.error_code for result in response.results}


async def described(door: Door, *names: str) -> dict[str, tuple[int, dict[int, int]]]:
    request = describe.DescribeUserScramCredentialsRequest(tuple(map(describe.UserName, names)) or None)
    response = await door.call(describe.API, 0, request)
    assert response.error_code == ErrorCode.NONE
    return {
        result.user: (
            result.error_code,
            {info.mechanism: info.iterations for info in result.credential_infos},
        )
        for result in response.results
    }


def test_users_are_set_described_and_removed_and_outlive_a_restart() -> None:
    async def story(door: Door) -> None:
        assert await described(door) == {}
        assert await change(door, upsertion("bob"), upsertion("alice", 2, 8192)) == {"bob": 0, "alice": 0}
        assert await change(door, upsertion("bob", 2)) == {"bob": 0}
        everybody = {"alice": (0, {2: 8192}), "bob": (0, {1: 4096, 2: 4096})}
        assert await described(door) == everybody
        await door.restart()
        assert await described(door) == everybody
        removed = await change(door, deletions=(alter.ScramCredentialDeletion("bob", 1),))
        assert removed == {"bob": 0}
        assert await described(door, "bob", "carol") == {
            "bob": (0, {2: 4096}),
            "carol": (ErrorCode.RESOURCE_NOT_FOUND, {}),
        }
        assert await described(door, "bob", "bob") == {"bob": (ErrorCode.DUPLICATE_RESOURCE, {})}

    at_the_door(story)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        pytest.param(upsertion("*"), ErrorCode.UNACCEPTABLE_CREDENTIAL, id="everybody's name"),
        pytest.param(upsertion("u", iterations=1), ErrorCode.UNACCEPTABLE_CREDENTIAL, id="iterations"),
        pytest.param(upsertion("u", 3), ErrorCode.UNSUPPORTED_SASL_MECHANISM, id="mechanism"),
        pytest.param(
            alter.ScramCredentialDeletion("u", 1), ErrorCode.RESOURCE_NOT_FOUND, id="removed, not there"
        ),
    ],
)
def test_what_is_refused_has_its_code_and_the_rest_is_done(
    asked: alter.ScramCredentialUpsertion | alter.ScramCredentialDeletion, code: ErrorCode
) -> None:
    async def story(door: Door) -> None:
        if isinstance(asked, alter.ScramCredentialDeletion):
            answers = await change(door, upsertion("other"), deletions=(asked,))
        else:
            answers = await change(door, upsertion("other"), asked)
        assert answers == {asked.name: code, "other": 0}
        assert list(await described(door)) == ["other"]

    at_the_door(story)


def test_a_user_named_twice_is_a_duplicate() -> None:
    async def story(door: Door) -> dict[str, int]:
        return await change(door, upsertion("u"), upsertion("u", 2))

    assert at_the_door(story) == {"u": ErrorCode.DUPLICATE_RESOURCE}


def test_who_asked_goes_with_a_request_that_another_node_carries_out() -> None:
    """Principal, groups, method, listener and address, and nothing of the node that passes it on."""
    noted: list[Caller] = []

    async def note(_: alter.AlterUserScramCredentialsRequest, caller: Caller) -> Message:
        noted.append(caller)
        return alter.AlterUserScramCredentialsResponse(0, ())

    asked = Caller(
        cast(Holdable, None),  # nothing is asked of the connection
        client_id="c",
        host="192.0.2.1",
        version=0,
        identity=Identity("User:alice", ("sailors", "cooks"), "SCRAM-SHA-512", ends_at_ms=5.0),
        listener="OUTSIDE",
    )

    async def main(table: str) -> None:
        request = wrapped(alter.API, 0, alter.AlterUserScramCredentialsRequest((), ()), asked.sender())
        encoded = b"".join(FORWARD.encode_request(0, request))
        travelled = FORWARD.decode_request(0, memoryview(encoded), 0, len(encoded))
        node = Caller(cast(Holdable, Node()), client_id="node-1", host="node1", version=0)
        served = {alter.API.key: ServedApi(alter.API, 0, 0, note)}
        answer = await forward.handle(
            travelled,
            node,
            cluster=Deciding(),
            forwarded=served if table == "forwarded" else {},
            routed=served if table == "routed" else {},
        )
        assert answer.error_code == ErrorCode.NONE

    for table in ("forwarded", "routed"):
        asyncio.run(main(table))
    for caller in noted:
        assert (caller.principal, caller.groups) == ("User:alice", ("sailors", "cooks"))
        assert (caller.identity.method, caller.listener) == ("SCRAM-SHA-512", "OUTSIDE")
        assert (caller.host, caller.client_id) == ("192.0.2.1", "c")
    assert len(noted) == 2


class Node:
    peer_id = NodeId(1)


class Deciding:
    decides = True
    image = Image()
