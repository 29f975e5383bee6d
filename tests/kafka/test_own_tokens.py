"""The cluster's own tokens at the Kafka door: who is given one, what it is good for, and when that ends."""

import asyncio

import pytest

from ropewalk.base.errors import AuthenticationFailed
from ropewalk.base.limits import TOKEN_LIFETIME_MS, TOKEN_LIFETIME_MS_MAX
from ropewalk.client.connections.connection import Connection
from ropewalk.security.access import Operation, ResourceType
from ropewalk.security.scram import Mechanism
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import alter_user_scram_credentials as alter
from ropewalk.wire.messages import issue_token, replace_token_key
from tests.kafka.door import NODE, Door
from tests.kafka.rights_world import ADMIN, RightsWorld, in_a_world_of_rights, rule
from tests.kafka.test_bearer_logins import is_served, log_in
from tests.kafka.visitors import ELSEWHERE, HERE, Visitor, remove_user, set_user, with_logins

OWN = (
    "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,OAUTHBEARER",
    "sasl.oauthbearer.jwks.endpoint.url=none",
)
FAILED = ErrorCode.SASL_AUTHENTICATION_FAILED
NOT_ALLOWED = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


async def issued(by: Visitor, user: str = "", lifetime_ms: int = -1) -> issue_token.IssueTokenResponse:
    return await by.ask(issue_token.API, 0, issue_token.IssueTokenRequest(user, lifetime_ms))


async def with_password(door: Door, name: str = "alice", password: str = "secret") -> Visitor:
    visitor = await Visitor.come(door)
    assert (await visitor.log_in(name, password, "PLAIN")).error_code == 0
    return visitor


async def token_for(door: Door, user: str = "alice") -> str:
    answer = await issued(await with_password(door, user))
    assert answer.error_code == 0, answer.error_message
    return answer.token


def test_whoever_proved_a_password_has_a_token_for_the_asking_and_logs_in_with_it() -> None:
    async def story(door: Door) -> None:
        by = await with_password(door)
        answer = await issued(by)
        assert (answer.error_code, answer.user) == (0, "alice")
        assert answer.ends_at_ms - answer.issued_at_ms == TOKEN_LIFETIME_MS
        assert answer.token not in repr(answer)
        visitor = await Visitor.come(door)
        logged_in = await log_in(visitor, answer.token)
        assert logged_in.error_code == 0
        assert 0 < logged_in.session_lifetime_ms <= TOKEN_LIFETIME_MS
        assert await is_served(visitor)
        await asyncio.sleep(TOKEN_LIFETIME_MS / 1000)
        assert not await is_served(visitor)
        assert (await log_in(await Visitor.come(door), answer.token)).error_code == FAILED

    with_logins(story, *OWN, limit_s=10_000)


def test_a_token_makes_no_token() -> None:
    async def story(door: Door) -> None:
        token = (await issued(await with_password(door))).token
        visitor = await Visitor.come(door)
        assert (await log_in(visitor, token)).error_code == 0
        for user in ("", "alice"):
            answer = await issued(visitor, user)
            assert (answer.error_code, answer.token) == (NOT_ALLOWED, "")

    with_logins(story, *OWN)


@pytest.mark.parametrize(
    ("host", "user", "code"), [(HERE, "alice", 0), (HERE, "", NOT_ALLOWED), (ELSEWHERE, "alice", NOT_ALLOWED)]
)
def test_who_said_no_name_is_given_one_for_a_user_and_on_the_nodes_own_machine_alone(
    host: str, user: str, code: int
) -> None:
    async def story(door: Door) -> None:
        nameless = await Connection.open(
            door.world.network.host(host),
            door.machine.clock,
            NODE,
            client_id="test",
            deadline_ms=door.deadline_ms,
        )
        request = issue_token.IssueTokenRequest(user, -1)
        answer = await nameless.call(issue_token.API, request, deadline_ms=door.deadline_ms)
        assert (answer.error_code, bool(answer.token)) == (code, code == 0)

    with_logins(story, *OWN)


@pytest.mark.parametrize(
    ("user", "lifetime_ms", "code"),
    [
        ("bob", -1, ErrorCode.RESOURCE_NOT_FOUND),
        ("alice", 0, ErrorCode.INVALID_REQUEST),
        ("alice", TOKEN_LIFETIME_MS_MAX + 1, ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_issued(user: str, lifetime_ms: int, code: ErrorCode) -> None:
    async def story(door: Door) -> None:
        answer = await issued(await with_password(door), user, lifetime_ms)
        assert (answer.error_code, answer.token) == (code, "")

    with_logins(story, *OWN)


@pytest.mark.parametrize("change", ["another password", "one more mechanism", "removed"])
def test_it_ends_with_the_credential_of_its_user(change: str) -> None:
    async def story(door: Door) -> None:
        await set_user(door, "bob", "secret")
        token, others = await token_for(door), await token_for(door, "bob")
        visitor, other = await Visitor.come(door), await Visitor.come(door)
        assert (await log_in(visitor, token)).error_code == 0
        assert (await log_in(other, others)).error_code == 0
        if change == "another password":
            await set_user(door, "alice", "other")
        elif change == "removed":
            await remove_user(door, "alice")
        else:
            await set_user(door, "alice", "secret", Mechanism.SHA_512)
        assert not await is_served(visitor)
        assert (await log_in(await Visitor.come(door), token)).error_code == FAILED
        assert await is_served(other)

    with_logins(story, *OWN)


@pytest.mark.parametrize("is_known_to_others", [False, True])
def test_keys_are_replaced_under_those_who_are_logged_in(is_known_to_others: bool) -> None:
    async def story(door: Door) -> None:
        token = await token_for(door)
        visitor = await Visitor.come(door)
        assert (await log_in(visitor, token)).error_code == 0
        request = replace_token_key.ReplaceTokenKeyRequest(is_known_to_others)
        answer = await door.call(replace_token_key.API, 0, request)
        assert (answer.error_code, len(answer.key_id)) == (0, 16)
        assert await is_served(visitor) is not is_known_to_others
        again = await log_in(await Visitor.come(door), token)
        assert (again.error_code == 0) is not is_known_to_others
        assert (await log_in(await Visitor.come(door), await token_for(door))).error_code == 0
        await asyncio.sleep(15)
        await door.restart()
        assert (await log_in(await Visitor.come(door), await token_for(door))).error_code == 0
        assert ((await log_in(await Visitor.come(door), token)).error_code == 0) is not is_known_to_others

    with_logins(story, *OWN)


def test_a_token_is_for_whoever_it_names_at_every_other_door() -> None:
    async def story(door: Door) -> None:
        bearers = door.node._parts.bearers
        identity = await bearers.identify(await token_for(door))
        assert (identity.principal, identity.groups, identity.method) == ("User:alice", (), "token")
        assert identity.ends_at_ms is not None
        for bad in ("", "garbage", (await token_for(door))[:-3] + "abc"):
            with pytest.raises(AuthenticationFailed):
                await bearers.identify(bad)

    with_logins(story, *OWN)


def test_rights_decide_for_whom_a_token_is_issued() -> None:
    async def story(world: RightsWorld) -> None:
        for user in ("alice", "bob"):
            upsertion = alter.ScramCredentialUpsertion(user, 1, 4096, b"s" * 16, b"p" * 32)
            await world.ask(
                alter.API, 0, alter.AlterUserScramCredentialsRequest((), (upsertion,)), principal=ADMIN
            )

        async def codes(user: str, method: str = "PLAIN") -> set[int]:
            request = issue_token.IssueTokenRequest(user, -1)
            return (await world.ask(issue_token.API, 0, request, method=method)).codes

        refused = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        await world.rule_by([])
        for method in ("PLAIN", "SCRAM-SHA-512", "certificate"):
            assert await codes("", method) == await codes("alice", method) == {0}
        assert await codes("alice", "OAUTHBEARER") == {refused}, "it would outlast what it came with"
        assert await codes("alice", "token") == {refused}
        assert await codes("bob") == {refused}
        await world.rule_by([rule(ResourceType.USER, "User:bob", Operation.CREATE_TOKENS)])
        assert await codes("bob") == {0}
        assert await codes("bob", "OAUTHBEARER") == {0}
        assert await codes("bob", "token") == {NOT_ALLOWED}

    in_a_world_of_rights(story)
