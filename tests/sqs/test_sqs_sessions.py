"""Users of the cluster at the SQS door, by access keys that come with session tokens: whose they are, and what ends them."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import pytest
from msgspec import Struct, structs

from ropewalk.base.errors import AuthenticationFailed
from ropewalk.metadata.settings.rights import STANDARD_AUTHORIZER
from ropewalk.security.access import Operation, ResourceType
from ropewalk.security.scram import Mechanism, salted
from ropewalk.security.sigv4_signing import Credentials, Signer
from ropewalk.wire.messages import alter_user_scram_credentials as alter
from ropewalk.wire.messages import issue_token, replace_token_key
from tests.http.client import Line
from tests.kafka.door import Door, at_the_door
from tests.kafka.rights_world import ADMIN, RightsWorld, rule
from tests.kafka.visitors import ITERATIONS, SALT
from tests.security.test_sigv4 import sign

T = TypeVar("T")

ON: Final = (f"authorizer.class.name={STANDARD_AUTHORIZER}", f"super.users={ADMIN}", "sqs.listen=node:9324")
HOUR_S: Final = 3_600
MINE: Final = rule(ResourceType.TOPIC, "jobs", Operation.ALL)


class Told(Struct, frozen=True):
    status: int
    code: str
    body: bytes


class World:
    """A node where rules decide, and alice, who has a password."""

    def __init__(self, door: Door) -> None:
        self.door = door
        self.rights = RightsWorld(door)

    async def set_password(self, password: str, name: str = "alice") -> None:
        mechanism = Mechanism.SHA_256
        upsertion = alter.ScramCredentialUpsertion(
            name, mechanism, ITERATIONS, SALT, salted(mechanism, password.encode(), SALT, ITERATIONS)
        )
        request = alter.AlterUserScramCredentialsRequest((), (upsertion,))
        assert (await self.rights.ask(alter.API, 0, request, principal=ADMIN)).codes == {0}

    async def session(
        self, user: str = "alice", *, lifetime_ms: int = 1000 * HOUR_S, is_session: bool = True
    ) -> Credentials:
        request = issue_token.IssueTokenRequest(user, lifetime_ms, is_session)
        answer = await self.rights.ask(issue_token.API, 1, request, principal=f"User:{user}", method="PLAIN")
        told = answer.response
        assert told.error_code == 0, told.error_message
        assert told.secret not in repr(told) or not told.secret
        return Credentials(told.access_key, told.secret, told.token)

    async def ask(self, credentials: Credentials, action: str = "CreateQueue", **parameters: Any) -> Told:
        body = json.dumps(parameters or {"QueueName": "jobs"}).encode()
        headers = {
            "host": "node:9324",
            "content-type": "application/x-amz-json-1.0",
            "x-amz-target": f"AmazonSQS.{action}",
            "x-amzn-query-mode": "true",
        }
        signer = Signer(credentials, region="eu-west-1", service="sqs")
        now_ms = self.door.machine.clock.now_ms()
        return await self.send("POST", "/", signer.signed("POST", "/", headers, body, now_ms=now_ms), body)

    async def send(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Told:
        line = await Line.open(self.door.world.network.host("client"), "node", 9324)
        lines = [f"{method} {target} HTTP/1.1", *[f"{name}: {value}" for name, value in headers.items()]]
        line.send("\r\n".join([*lines, f"content-length: {len(body)}", "", ""]).encode() + body)
        page = await line.page()
        return Told(page.status, page.headers.get("x-amzn-query-error", "").partition(";")[0], page.body)


def with_sessions(story: Callable[[World], Awaitable[T]], *settings: str) -> T:
    async def begin(door: Door) -> T:
        world = World(door)
        await world.set_password("secret")
        return await story(world)

    return at_the_door(begin, *ON, *(settings or ("sqs.insecure=true",)), limit_s=100_000)


def test_a_session_is_its_users_and_has_the_rights_of_the_day() -> None:
    async def story(world: World) -> list[tuple[int, str]]:
        credentials = await world.session()
        told = [await world.ask(credentials)]
        await world.rights.allow(MINE)
        told.append(await world.ask(credentials))
        await world.rights.forget()
        told.append(await world.ask(credentials, "GetQueueUrl", QueueName="jobs"))
        assert credentials.access_key.startswith("ASRW")
        assert (len(credentials.access_key), len(credentials.secret_key)) == (20, 40)
        return [(each.status, each.code) for each in told]

    hidden = (400, "AWS.SimpleQueueService.NonExistentQueue")
    assert with_sessions(story) == [(403, "AccessDenied"), (200, ""), hidden]


@pytest.mark.parametrize("has_file", [False, True])
def test_sessions_count_beside_a_file_of_keys_and_without_one(tmp_path: Path, has_file: bool) -> None:
    path = tmp_path / "keys.toml"
    path.touch(mode=0o600)
    path.write_text('[AKIAEXAMPLE]\nsecret = "a secret"\nuser = "alice"\n')

    async def story(world: World) -> list[int]:
        await world.rights.allow(MINE)
        of_the_file = Credentials("AKIAEXAMPLE", "a secret", "a token of no meaning")
        return [(await world.ask(each)).status for each in (await world.session(), of_the_file)]

    settings = (f"sqs.credentials={path}",) if has_file else ("sqs.insecure=true",)
    assert with_sessions(story, *settings) == [200, 200 if has_file else 403]


def test_a_session_ends_in_time() -> None:
    async def story(world: World) -> list[tuple[int, str]]:
        await world.rights.allow(MINE)
        credentials = await world.session()
        await asyncio.sleep(HOUR_S - 1)
        told = [await world.ask(credentials)]
        await asyncio.sleep(2)
        told.append(await world.ask(credentials))
        assert b"is expired" in told[1].body
        return [(each.status, each.code) for each in told]

    assert with_sessions(story) == [(200, ""), (403, "ExpiredToken")]


@pytest.mark.parametrize("way", ["the password is another", "the user is gone", "the key is known to others"])
def test_a_session_ends_with_what_it_rests_on(way: str) -> None:
    async def story(world: World) -> list[tuple[int, str]]:
        await world.rights.allow(MINE)
        credentials = await world.session()
        told = [await world.ask(credentials)]
        if way == "the password is another":
            await world.set_password("another")
        elif way == "the user is gone":
            removal = alter.ScramCredentialDeletion("alice", Mechanism.SHA_256)
            request = alter.AlterUserScramCredentialsRequest((removal,), ())
            await world.rights.ask(alter.API, 0, request, principal=ADMIN)
        else:
            replacing = replace_token_key.ReplaceTokenKeyRequest(is_known_to_others=True)
            await world.rights.ask(replace_token_key.API, 0, replacing, principal=ADMIN)
        told.append(await world.ask(credentials))
        return [(each.status, each.code) for each in told]

    assert with_sessions(story) == [(200, ""), (403, "InvalidClientTokenId")]


def test_whoever_sees_a_request_cannot_make_another() -> None:
    """Not by its token, nor by another's; and a token that is good at other doors is none here."""

    async def story(world: World) -> list[tuple[int, str]]:
        await world.rights.allow(MINE)
        await world.set_password("secret", "bob")
        mine, theirs = await world.session(), await world.session("bob")
        bearer = await world.session(is_session=False)
        assert (bearer.access_key, bearer.secret_key) == ("", "")
        wrong = [
            structs.replace(mine, secret_key="guessed"),
            structs.replace(mine, secret_key=theirs.secret_key),
            structs.replace(mine, session_token=theirs.session_token),
            structs.replace(theirs, session_token=mine.session_token),
            structs.replace(mine, session_token=mine.session_token[:-3] + "abc"),
            structs.replace(mine, session_token="garbage"),
            structs.replace(mine, session_token=bearer.session_token),
            structs.replace(mine, session_token=""),
        ]
        told = [await world.ask(each) for each in wrong]
        with pytest.raises(AuthenticationFailed, match="not made as this cluster makes"):
            await world.rights.parts.bearers.identify(mine.session_token)
        return [(each.status, each.code) for each in told]

    mismatch, invalid = (403, "SignatureDoesNotMatch"), (403, "InvalidClientTokenId")
    unproved = (403, "AccessDenied")
    assert with_sessions(story) == [mismatch, mismatch, *[invalid] * 5, unproved]


def test_a_presigned_address_is_for_what_it_says_and_shows_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """By AWS's own library, whose clock is the machine's; the node's is set to that."""

    async def story(world: World) -> list[tuple[int, bool]]:
        await world.rights.allow(MINE)
        credentials = await world.session()
        await world.ask(credentials)
        now = world.door.machine.clock.now_ms()
        monkeypatch.setattr("tests.security.test_sigv4.KEY", credentials.access_key)
        monkeypatch.setattr("tests.security.test_sigv4.SECRET", credentials.secret_key)
        monkeypatch.setattr("botocore.auth.get_current_datetime", lambda: _at(now))
        address = "http://node:9324/?Action=GetQueueUrl&QueueName=jobs"
        signed = sign("GET", address, body=b"", token=credentials.session_token, expires_s=60)
        assert credentials.secret_key not in signed.target
        told = []
        for target in (signed.target, signed.target.replace("QueueName=jobs", "QueueName=other")):
            answer = await world.send("GET", target, {"host": urlsplit(address).netloc}, b"")
            told.append((answer.status, b"SignatureDoesNotMatch" in answer.body))
        return told

    assert with_sessions(story) == [(200, False), (403, True)]


def _at(now_ms: int) -> datetime:
    return datetime.fromtimestamp(now_ms // 1000, UTC)
