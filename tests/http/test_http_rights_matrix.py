"""Every page of the HTTP door by everybody who may ask for it: the exact answer, and no name of what is there for those who may not see it.

The cases are generated from what `http/routes.py` says that a page needs.
"""

from collections.abc import Iterator
from http import HTTPStatus

import pytest

from ropewalk.http.needs import Figures, Inner, Known, Open
from ropewalk.http.routes import Route
from ropewalk.node.console_door import console_of
from ropewalk.node.http_door import pages
from ropewalk.security.access import CLUSTER_NAME, Operation, Permission, ResourceType, Rule
from ropewalk.wire.messages import create_topics, offset_commit
from tests.http.test_http_admission import ON, PASSWORD, Guest, basic, token_of, with_guests
from tests.kafka.rights_world import ADMIN, RightsWorld, rule
from tests.kafka.visitors import HERE

SECRET = "secret-"
CLUSTER = ResourceType.CLUSTER
OTHERS = (Operation.CREATE, Operation.CLUSTER_ACTION, Operation.IDEMPOTENT_WRITE)
"""Operations on the cluster that imply no other."""


def listed(world: RightsWorld) -> list[Route]:
    """The door's own table, and the console's."""
    console = console_of(world.parts)
    assert console is not None
    return list(pages(world.parts, console))


def refused_cases(needs: Figures | Inner) -> Iterator[tuple[str, list[Rule]]]:
    allowing = [rule(CLUSTER, CLUSTER_NAME, each) for each in needs.operations]
    yield "no right", []
    yield "other rights", [rule(CLUSTER, CLUSTER_NAME, each) for each in OTHERS]
    yield "on topics alone", [rule(ResourceType.TOPIC, "*", Operation.ALL)]
    yield "somebody else's", [rule(CLUSTER, CLUSTER_NAME, Operation.ALL, principal="User:alice-too")]
    for each in needs.operations:
        for operation in (each, Operation.ALL):
            for principal in ("User:alice", "User:*"):
                denied = rule(
                    CLUSTER, CLUSTER_NAME, operation, permission=Permission.DENY, principal=principal
                )
                yield f"denied {operation.name} to {principal}", [*allowing, denied]


async def plant(world: RightsWorld) -> None:
    made = create_topics.CreateTopicsRequest((create_topics.CreatableTopic("secret-topic", 1, 1),))
    assert (await world.ask(create_topics.API, 7, made, principal=ADMIN)).codes == {0}
    await world.host_group("secret-group")
    partitions = (offset_commit.OffsetCommitRequestPartition(0, 1),)
    topics = (offset_commit.OffsetCommitRequestTopic("secret-topic", partitions=partitions),)
    request = offset_commit.OffsetCommitRequest("secret-group", topics=topics)
    assert (await world.ask(offset_commit.API, 8, request, principal=ADMIN)).codes == {0}


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_page_is_shown_to_those_who_have_what_it_needs_and_to_nobody_else(method: str) -> None:
    async def story(world: RightsWorld) -> int:
        await plant(world)
        guest, count = Guest(world.door, HERE), 0
        proofs = [basic("alice", PASSWORD), await token_of(world)]

        async def told(path: str, *headers: str, host: str = "node") -> tuple[int, bool]:
            nonlocal count
            count += 1
            page = await guest.ask(path, "Connection: close", *headers, method=method, host=host)
            return page.status, SECRET in page.text

        for route in listed(world):
            path, needs = route.path, route.needs
            match needs:
                case Open():
                    for headers in ((), (basic("alice", "wrong"),), (proofs[0],)):
                        status, is_leaking = await told(path, *headers)
                        assert status < HTTPStatus.INTERNAL_SERVER_ERROR, path
                        assert not is_leaking, path
                case Figures() | Inner():
                    for case, rules in refused_cases(needs):
                        await world.rule_by(rules)
                        assert await told(path) == (401, False), (path, case)
                        assert await told(path, basic("alice", "wrong")) == (401, False), (path, case)
                        for proof in proofs:
                            assert await told(path, proof) == (403, False), (path, case)
                        assert await told(path, proofs[0], host="evil.example") == (421, False)
                    for operation in needs.operations:
                        await world.rule_by([rule(CLUSTER, CLUSTER_NAME, operation)])
                        assert (await told(path))[0] == 401
                        for proof in proofs:
                            assert (await told(path, proof))[0] in (200, 503), path
                        await world.forget()
                        for proof in proofs:
                            assert await told(path, proof) == (403, False), "it was revoked"
                case Known():
                    assert await told(path, host="evil.example") == (421, False)
        return count

    assert with_guests(story, *ON) >= 150
