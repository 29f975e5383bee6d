"""Logging in by OAUTHBEARER: with tokens of an authority and with the cluster's own, bad ones, and sessions that end."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from structlog.testing import capture_logs

from ropewalk.base.errors import InvalidSetting
from ropewalk.kafka.login import REFUSED
from ropewalk.security.oauthbearer import FAREWELL, REFUSAL
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import metadata, sasl_authenticate
from tests.kafka.door import Door
from tests.kafka.visitors import ELSEWHERE, HERE, Closed, Visitor, with_logins
from tests.security.issuing import PORT, Issuer
from tests.security.signing import (
    AUDIENCE,
    EC,
    ISSUER,
    OTHER_RSA,
    RSA,
    claims,
    presented,
    sign,
    with_the_public_key,
)

OAUTH = (
    "sasl.enabled.mechanisms=PLAIN,OAUTHBEARER",
    f"sasl.oauthbearer.jwks.endpoint.url=http://127.0.0.1:{PORT}/certs",
    f"sasl.oauthbearer.expected.issuer={ISSUER}",
    f"sasl.oauthbearer.expected.audience={AUDIENCE}",
)
FAILED = ErrorCode.SASL_AUTHENTICATION_FAILED


def with_tokens(story: Callable[[Door, Issuer], Awaitable[None]], *settings: str) -> None:
    issuer = Issuer(RSA, EC, host="node")

    async def begun(door: Door) -> None:
        await story(door, issuer)

    with_logins(begun, *OAUTH, *settings, before=issuer.start)


def now_ms(door: Door) -> int:
    return door.machine.clock.now_ms()


async def log_in(
    visitor: Visitor, token: str, acting_as: str = ""
) -> sasl_authenticate.SaslAuthenticateResponse:
    """The last answer, be it a refusal."""
    shaken = await visitor.handshake("OAUTHBEARER")
    assert shaken.error_code == 0
    answer = await visitor.token(presented(token, acting_as))
    if answer.error_code or not answer.auth_bytes:
        return answer
    assert answer.auth_bytes == REFUSAL
    return await visitor.token(FAREWELL)


async def is_served(visitor: Visitor) -> bool:
    try:
        answer = await visitor.ask(metadata.API, 12, metadata.MetadataRequest(None))
    except Closed:
        return False
    return len(answer.brokers) == 1


def test_whoever_has_a_token_is_served_until_that_ends() -> None:
    async def story(door: Door, _: Issuer) -> None:
        visitor = await Visitor.come(door)
        answer = await log_in(visitor, sign(claims(now_ms(door), exp=now_ms(door) // 1000 + 60)))
        assert answer.error_code == 0
        assert 58_000 <= answer.session_lifetime_ms <= 60_000
        assert await is_served(visitor)
        await asyncio.sleep(answer.session_lifetime_ms / 1000 - 1)
        assert await is_served(visitor)
        await asyncio.sleep(1)
        assert not await is_served(visitor)

    with_tokens(story)


def test_a_session_lasts_no_longer_than_others_may() -> None:
    async def story(door: Door, _: Issuer) -> None:
        visitor = await Visitor.come(door)
        answer = await log_in(visitor, sign(claims(now_ms(door))))
        assert answer.session_lifetime_ms == 10_000
        await asyncio.sleep(11)
        assert not await is_served(visitor)

    with_tokens(story, "connections.max.reauth.ms=10000")


def test_it_goes_on_with_another_token_of_the_same_user() -> None:
    async def story(door: Door, _: Issuer) -> None:
        visitor = await Visitor.come(door)
        for _round in range(3):
            answer = await log_in(visitor, sign(claims(now_ms(door), exp=now_ms(door) // 1000 + 60)))
            assert answer.error_code == 0
            await asyncio.sleep(40)
            assert await is_served(visitor)
        await asyncio.sleep(20)
        assert not await is_served(visitor)

    with_tokens(story)


def test_another_user_at_the_same_connection_is_refused() -> None:
    async def story(door: Door, _: Issuer) -> None:
        visitor = await Visitor.come(door)
        assert (await log_in(visitor, sign(claims(now_ms(door))))).error_code == 0
        await asyncio.sleep(2)
        with capture_logs() as said:
            answer = await log_in(visitor, sign(claims(now_ms(door), "eve")))
        assert (answer.error_code, answer.error_message) == (FAILED, REFUSED)
        assert [line["reason"] for line in said if "reason" in line] == [
            "it was User:alice, and logged in as another"
        ]
        assert await visitor.closes()

    with_tokens(story)


def test_nobody_acts_as_somebody_else() -> None:
    async def story(door: Door, _: Issuer) -> None:
        assert (await log_in(await Visitor.come(door), sign(claims(now_ms(door))), "alice")).error_code == 0
        answer = await log_in(await Visitor.come(door), sign(claims(now_ms(door))), "bob")
        assert answer.error_code == FAILED

    with_tokens(story)


BAD = {
    "expired": (lambda now: sign(claims(now, exp=now // 1000)), "the token ended 0 s ago"),
    "a foreign key": (lambda now: sign(claims(now), OTHER_RSA), "the signature of the token is not right"),
    "a foreign issuer": (
        lambda now: sign(claims(now, iss="https://x")),
        f"the issuer of the token is not {ISSUER}",
    ),
    "a foreign audience": (
        lambda now: sign(claims(now, aud="x")),
        "the token is for another audience than ropewalk",
    ),
    "the public key": (
        lambda now: with_the_public_key(claims(now)),
        "algorithm that does not go with its key",
    ),
    "an unknown key": (lambda now: sign(claims(now), kid="x"), "a key that the issuer does not show"),
    "garbage": (lambda now: "garbage", "not a signed token"),
    "huge": (lambda now: "x" * 17_000, "at most 16384 are read"),
}


@pytest.mark.parametrize(("token_at", "reason"), BAD.values(), ids=BAD)
def test_everybody_else_hears_the_same_and_the_log_says_why(
    token_at: Callable[[int], str], reason: str
) -> None:
    async def story(door: Door, _: Issuer) -> None:
        visitor = await Visitor.come(door)
        before_s = door.world.now_s
        token = token_at(now_ms(door))
        with capture_logs() as said:
            answer = await log_in(visitor, token)
        assert (answer.error_code, answer.error_message, answer.auth_bytes) == (FAILED, REFUSED, b"")
        assert 0.1 <= door.world.now_s - before_s <= 2
        assert await visitor.closes()
        (line,) = [each for each in said if each["event"] == "a login failed"]
        assert line["client"] == HERE
        assert reason in line["reason"]
        assert line["failed_count"] == 1, "it is one failure, though it is told in two steps"
        assert token not in str(said)

    with_tokens(story)


def test_a_client_that_leaves_at_the_first_refusal_is_in_the_log_all_the_same() -> None:
    async def story(door: Door, _: Issuer) -> None:
        visitor = await Visitor.come(door)
        await visitor.handshake("OAUTHBEARER")
        with capture_logs() as said:
            assert (await visitor.token(presented("garbage"))).auth_bytes == REFUSAL
            assert not await is_served(visitor), "a refusal in two steps is no login"
        assert [line["event"] for line in said].count("a login failed") == 1

    with_tokens(story)


def test_a_key_that_is_shown_no_more_ends_the_sessions_it_proved() -> None:
    async def story(door: Door, issuer: Issuer) -> None:
        by_rsa, by_ec = [await Visitor.come(door) for _ in range(2)]
        until_s = now_ms(door) // 1000 + 3_600
        assert (await log_in(by_rsa, sign(claims(now_ms(door), exp=until_s)))).error_code == 0
        assert (await log_in(by_ec, sign(claims(now_ms(door), exp=until_s), EC, "ES256"))).error_code == 0
        issuer.show(EC)
        await asyncio.sleep(5)
        assert not await is_served(by_rsa)
        assert await is_served(by_ec)

    with_tokens(story, "sasl.oauthbearer.jwks.endpoint.refresh.ms=2000")


def test_a_new_key_is_known_before_its_first_token_is_refused() -> None:
    async def story(door: Door, issuer: Issuer) -> None:
        issuer.show(OTHER_RSA)
        visitor = await Visitor.come(door)
        answer = await log_in(visitor, sign(claims(now_ms(door)), OTHER_RSA, kid="new"))
        assert answer.error_code == FAILED, "nobody shows a key of that name"
        await asyncio.sleep(11)
        issuer.show(EC, OTHER_RSA)
        issuer.body = issuer.body.replace(b'"rsa"', b'"new"')
        visitor = await Visitor.come(door)
        answer = await log_in(visitor, sign(claims(now_ms(door)), OTHER_RSA, kid="new"))
        assert answer.error_code == 0
        assert await is_served(visitor)

    with_tokens(story)


def test_no_token_is_taken_where_others_could_listen() -> None:
    async def story(door: Door, _: Issuer) -> None:
        visitor = await Visitor.come(door, ELSEWHERE)
        shaken = await visitor.handshake("OAUTHBEARER")
        assert (shaken.error_code, shaken.mechanisms) == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, ())

    with_tokens(story)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (("sasl.oauthbearer.jwks.endpoint.url=",), "expected.issuer is set, and .*jwks.endpoint.url is not"),
        (("sasl.oauthbearer.expected.issuer=",), "is set, and sasl.oauthbearer.expected.issuer is not"),
        (("sasl.oauthbearer.expected.audience=",), "is set, and sasl.oauthbearer.expected.audience is not"),
        (
            tuple(
                f"sasl.oauthbearer.{name}="
                for name in ("jwks.endpoint.url", "expected.issuer", "expected.audience")
            ),
            "has OAUTHBEARER for SASL_PLAINTEXT, which needs",
        ),
        (("sasl.oauthbearer.jwks.endpoint.url=http://issuer.example/",), "use https"),
        (("sasl.oauthbearer.jwks.endpoint.url=file:///nowhere.json",), "no keys can be had there"),
        (("sasl.oauthbearer.expected.issuer=ropewalk:mine",), "only clusters like this one"),
        (
            ("listener.name.sasl_plaintext.oauthbearer.sasl.oauthbearer.expected.audience=",),
            "is set for SASL_PLAINTEXT, and sasl.oauthbearer.expected.audience is not",
        ),
    ],
)
def test_what_is_missing_keeps_a_node_from_starting(settings: tuple[str, ...], words: str) -> None:
    async def story(_door: Door, _: Issuer) -> None:
        raise AssertionError("it started")

    with pytest.raises(InvalidSetting, match=words):
        with_tokens(story, *settings)


def test_listeners_have_authorities_of_their_own() -> None:
    async def story(door: Door, _: Issuer) -> None:
        good = await log_in(await Visitor.come(door), sign(claims(now_ms(door), aud="theirs")))
        other = await log_in(await Visitor.come(door), sign(claims(now_ms(door))))
        assert (good.error_code, other.error_code) == (0, FAILED)

    with_tokens(story, "listener.name.sasl_plaintext.sasl.oauthbearer.expected.audience=theirs")
