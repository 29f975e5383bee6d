"""Logging in by SASL: what is answered in every state, who is let in, and when a session is over."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable

import pytest
from structlog.testing import capture_logs

from ropewalk.base.limits import LOGIN_FRAME_BYTES_MAX, LOGIN_MS_MAX
from ropewalk.kafka.login import REFUSED, UNPROTECTED
from ropewalk.security.scram import Mechanism
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import api_versions, metadata, sasl_authenticate, sasl_handshake
from tests.kafka.door import Door, at_the_door
from tests.kafka.visitors import (
    ELSEWHERE,
    HERE,
    Closed,
    Visitor,
    remove_user,
    set_user,
    with_logins,
)

ALL = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN")
REAUTH = "connections.max.reauth.ms=60000"
ILLEGAL = ErrorCode.ILLEGAL_SASL_STATE
FAILED = ErrorCode.SASL_AUTHENTICATION_FAILED


async def asks_for_topics(visitor: Visitor) -> bool:
    """Whether it is served what only those are served who said who they are."""
    try:
        answer = await visitor.ask(metadata.API, 12, metadata.MetadataRequest(None))
    except Closed:
        return False
    return len(answer.brokers) == 1


@pytest.mark.parametrize("mechanism", ALL)
@pytest.mark.parametrize("version", [0, 1, 2])
def test_whoever_proves_its_name_is_served(mechanism: str, version: int) -> None:
    async def story(door: Door) -> None:
        await set_user(door, "alice", "secret", Mechanism.SHA_512)
        visitor = await Visitor.come(door)
        answer = await visitor.log_in("alice", "secret", mechanism, version)
        assert answer.error_code == ErrorCode.NONE
        assert answer.session_lifetime_ms == 0
        assert await asks_for_topics(visitor)

    with_logins(story)


@pytest.mark.parametrize(
    ("name", "password", "mechanism", "reason"),
    [
        pytest.param("alice", "wrong", "SCRAM-SHA-256", "the password is wrong", id="wrong"),
        pytest.param("alice", "wrong", "PLAIN", "the password is wrong", id="wrong, by PLAIN"),
        pytest.param("nobody", "secret", "SCRAM-SHA-256", "there is no such user", id="unknown"),
        pytest.param("nobody", "secret", "PLAIN", "there is no such user", id="unknown, by PLAIN"),
        pytest.param("alice", "secret", "SCRAM-SHA-512", "there is no such user", id="another mechanism"),
        pytest.param("Alice", "secret", "PLAIN", "there is no such user", id="another spelling"),
    ],
)
def test_everybody_else_hears_the_same_and_the_log_says_who_and_why(
    name: str, password: str, mechanism: str, reason: str
) -> None:
    async def story(door: Door) -> None:
        visitor = await Visitor.come(door)
        before_s = door.world.now_s
        with capture_logs() as said:
            answer = await visitor.log_in(name, password, mechanism)
        assert (answer.error_code, answer.error_message, answer.auth_bytes) == (FAILED, REFUSED, b"")
        answered_s = door.world.now_s
        assert answered_s - before_s >= 0.1, "the delay keeps who tries passwords from trying many"
        assert await visitor.closes()
        assert door.world.now_s - answered_s >= 0.1, "some clients forget an answer that comes with the end"
        (line,) = [each for each in said if each["event"] == "a login failed"]
        assert (line["client"], line["user"]) == (HERE, repr(name))
        assert line["reason"] == f"{mechanism}: {reason}"
        assert "secret" not in str(said)

    with_logins(story)


def test_a_user_that_is_not_there_is_led_as_far_as_one_that_is() -> None:
    """The same messages, the same salt at every try, and of the shape that others have."""

    async def story(door: Door) -> None:
        async def challenge(name: str) -> list[str]:
            visitor = await Visitor.come(door)
            await visitor.handshake("SCRAM-SHA-256")
            answer = await visitor.token(f"n,,n={name},r=abc".encode())
            assert answer.error_code == ErrorCode.NONE
            parts = answer.auth_bytes.decode().split(",")
            assert parts[0].startswith("r=abc")
            return parts[1:]

        alice, nobody = await challenge("alice"), await challenge("nobody")
        assert nobody[1:] == alice[1:], "as many iterations"
        assert len(nobody[0]) == len(alice[0]), "as much salt"
        assert nobody != await challenge("another"), "a salt of its own"
        await door.restart()
        assert await challenge("nobody") == nobody
        assert await challenge("alice") == alice

    with_logins(story)


Steps = Callable[[Visitor], Awaitable[object]]


async def versions(visitor: Visitor) -> int:
    answer = await visitor.ask(api_versions.API, 0, api_versions.ApiVersionsRequest("", ""))
    return answer.error_code


async def twice_versions(visitor: Visitor) -> object:
    return await versions(visitor), await versions(visitor)


async def versions_of_the_future(visitor: Visitor) -> object:
    """That it is refused does not count: the client asks again in a version that it was told."""
    visitor.send_frame(b"\0\x12" + b"\0\x63" + b"\0\0\0\x07" + b"\xff\xff" + b"\0")
    refused = await visitor.answer(api_versions.API, 0)
    return refused.error_code, await versions(visitor)


async def versions_after_the_handshake(visitor: Visitor) -> object:
    await visitor.handshake("PLAIN")
    return await versions(visitor)


async def anything_else(visitor: Visitor) -> object:
    return (await visitor.ask(metadata.API, 12, metadata.MetadataRequest(None))).brokers


async def anything_else_after_the_handshake(visitor: Visitor) -> object:
    await visitor.handshake("PLAIN")
    return await anything_else(visitor)


async def anything_else_amid_the_exchange(visitor: Visitor) -> object:
    await visitor.handshake("SCRAM-SHA-256")
    await visitor.token(b"n,,n=alice,r=abc")
    return await anything_else(visitor)


async def authenticate_first(visitor: Visitor) -> object:
    return (await visitor.token(b"\0alice\0secret")).error_code


async def handshake_twice(visitor: Visitor) -> object:
    await visitor.handshake("PLAIN")
    return (await visitor.handshake("PLAIN")).error_code


async def unknown_mechanism(visitor: Visitor) -> object:
    answer = await visitor.handshake("GSSAPI")
    return answer.error_code, answer.mechanisms


async def large_frame(visitor: Visitor) -> object:
    visitor.send_frame(b"x" * (LOGIN_FRAME_BYTES_MAX + 1))
    return await visitor.frame()


async def long_message(visitor: Visitor) -> object:
    await visitor.handshake("SCRAM-SHA-256")
    return (await visitor.token(b"n,,n=alice,r=" + b"a" * 5_000)).error_code


async def nonce_cut_short(visitor: Visitor) -> object:
    """Kafka compared only its end (CVE-2024-56128)."""
    await visitor.handshake("SCRAM-SHA-256")
    first = await visitor.token(b"n,,n=alice,r=abc")
    nonce = first.auth_bytes.decode().split(",")[0][len("r=abc") :]
    return (await visitor.token(f"c=biws,r={nonce},p=AAAA".encode())).error_code


async def channel_binding(visitor: Visitor) -> object:
    await visitor.handshake("SCRAM-SHA-256")
    return (await visitor.token(b"p=tls-unique,,n=alice,r=abc")).error_code


async def as_somebody_else(visitor: Visitor) -> object:
    await visitor.handshake("PLAIN")
    return (await visitor.token(b"root\0alice\0secret")).error_code


async def as_oneself(visitor: Visitor) -> object:
    await visitor.handshake("PLAIN")
    return (await visitor.token(b"alice\0alice\0secret")).error_code


async def no_password(visitor: Visitor) -> object:
    await visitor.handshake("PLAIN")
    return (await visitor.token(b"\0alice\0")).error_code


async def authenticate_when_known(visitor: Visitor) -> object:
    await visitor.log_in("alice", "secret", "PLAIN")
    return (await visitor.token(b"\0alice\0secret")).error_code


async def handshake_without_need(visitor: Visitor) -> object:
    await visitor.log_in("alice", "secret", "PLAIN")
    return (await visitor.handshake("PLAIN")).error_code


CLOSED = "closed"


@pytest.mark.parametrize(
    ("steps", "answer", "goes_on"),
    [
        pytest.param(versions, ErrorCode.NONE, True, id="ApiVersions"),
        pytest.param(twice_versions, CLOSED, False, id="ApiVersions twice"),
        pytest.param(
            versions_of_the_future,
            (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.NONE),
            True,
            id="ApiVersions of an unknown version, and of a known one",
        ),
        pytest.param(versions_after_the_handshake, CLOSED, False, id="ApiVersions after SaslHandshake"),
        pytest.param(anything_else, CLOSED, False, id="any other API"),
        pytest.param(anything_else_after_the_handshake, CLOSED, False, id="any other API, then"),
        pytest.param(anything_else_amid_the_exchange, CLOSED, False, id="any other API amid the exchange"),
        pytest.param(authenticate_first, ILLEGAL, False, id="SaslAuthenticate first"),
        pytest.param(handshake_twice, ILLEGAL, False, id="SaslHandshake twice"),
        pytest.param(
            unknown_mechanism, (ErrorCode.UNSUPPORTED_SASL_MECHANISM, ALL), False, id="unknown mechanism"
        ),
        pytest.param(large_frame, CLOSED, False, id="a frame of more than 64 KiB"),
        pytest.param(long_message, FAILED, False, id="a message that is too long"),
        pytest.param(nonce_cut_short, FAILED, False, id="the end of the nonce"),
        pytest.param(channel_binding, FAILED, False, id="channel binding"),
        pytest.param(as_somebody_else, FAILED, False, id="acting as another"),
        pytest.param(as_oneself, ErrorCode.NONE, True, id="acting as oneself"),
        pytest.param(no_password, FAILED, False, id="no password"),
        pytest.param(authenticate_when_known, ILLEGAL, True, id="SaslAuthenticate afterwards"),
        pytest.param(handshake_without_need, ILLEGAL, True, id="SaslHandshake where sessions do not end"),
    ],
)
def test_answers_in_every_state(steps: Steps, answer: object, goes_on: bool) -> None:
    async def story(door: Door) -> None:
        visitor = await Visitor.come(door)
        try:
            assert await steps(visitor) == answer
        except Closed:
            assert answer == CLOSED
        if not goes_on:
            assert await visitor.closes()

    with_logins(story)


@pytest.mark.parametrize("mechanism", ALL)
def test_no_mechanism_is_offered_where_others_could_listen(mechanism: str) -> None:
    async def story(door: Door) -> None:
        visitor = await Visitor.come(door, ELSEWHERE)
        shaken = await visitor.handshake(mechanism)
        assert (shaken.error_code, shaken.mechanisms) == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, ())
        answer = await visitor.token(b"\0alice\0secret")
        assert (answer.error_code, answer.error_message) == (FAILED, UNPROTECTED)
        assert await visitor.closes()

    with_logins(story)


def test_only_the_mechanisms_that_are_enabled_are_offered() -> None:
    async def story(door: Door) -> None:
        visitor = await Visitor.come(door)
        shaken = await visitor.handshake("PLAIN")
        assert (shaken.error_code, shaken.mechanisms) == (
            ErrorCode.UNSUPPORTED_SASL_MECHANISM,
            ("SCRAM-SHA-512",),
        )

    with_logins(story, "sasl.enabled.mechanisms=SCRAM-SHA-512")


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "PLAIN"])
def test_clients_of_kafka_0_10_log_in_by_frames_without_headers(mechanism: str) -> None:
    async def story(door: Door) -> None:
        from scramp import ScramClient

        visitor = await Visitor.come(door)
        assert (await visitor.handshake(mechanism, version=0)).error_code == ErrorCode.NONE
        if mechanism == "PLAIN":
            visitor.send_frame(b"\0alice\0secret")
            assert await visitor.frame() == b""
        else:
            client = ScramClient([mechanism], "alice", "secret")
            visitor.send_frame(client.get_client_first().encode())
            client.set_server_first((await visitor.frame()).decode())
            visitor.send_frame(client.get_client_final().encode())
            client.set_server_final((await visitor.frame()).decode())
        assert await asks_for_topics(visitor)
        refused = await Visitor.come(door)
        await refused.handshake("PLAIN", version=0)
        refused.send_frame(b"\0alice\0wrong")
        assert await refused.closes(), "there is no place for an error"

    with_logins(story)


def test_requests_that_were_sent_ahead_are_served_once_it_is_known_who_asks() -> None:
    async def story(door: Door) -> None:
        visitor = await Visitor.come(door)
        visitor.send(sasl_handshake.API, 1, sasl_handshake.SaslHandshakeRequest("PLAIN"))
        visitor.send(sasl_authenticate.API, 2, sasl_authenticate.SaslAuthenticateRequest(b"\0alice\0secret"))
        visitor.send(metadata.API, 12, metadata.MetadataRequest(None))
        await visitor.answer(sasl_handshake.API, 1)
        assert (await visitor.answer(sasl_authenticate.API, 2)).error_code == ErrorCode.NONE
        assert len((await visitor.answer(metadata.API, 12)).brokers) == 1

    with_logins(story)


def test_a_listener_without_sasl_knows_no_logins() -> None:
    async def story(door: Door) -> list[int]:
        shaken = await door.call(sasl_handshake.API, 1, sasl_handshake.SaslHandshakeRequest("PLAIN"))
        request = sasl_authenticate.SaslAuthenticateRequest(b"\0a\0b")
        return [shaken.error_code, (await door.call(sasl_authenticate.API, 2, request)).error_code]

    assert at_the_door(story) == [ILLEGAL, ILLEGAL]


def test_who_does_not_log_in_loses_its_place() -> None:
    async def story(door: Door) -> None:
        visitor = await Visitor.come(door)
        await visitor.handshake("PLAIN")
        before_s = door.world.now_s
        assert await visitor.closes()
        assert door.world.now_s - before_s == pytest.approx(LOGIN_MS_MAX / 1000, rel=0.01)
        known = await Visitor.come(door)
        await known.log_in("alice", "secret", "PLAIN")
        await asyncio.sleep(2 * LOGIN_MS_MAX / 1000)
        assert await asks_for_topics(known)

    with_logins(story)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "PLAIN"])
def test_a_session_that_ends_can_be_renewed_by_the_same_name(mechanism: str) -> None:
    async def story(door: Door) -> None:
        visitor = await Visitor.come(door)
        assert (await visitor.log_in("alice", "secret", mechanism)).session_lifetime_ms == 60_000
        assert (await visitor.handshake(mechanism)).error_code == ILLEGAL, "less than a second later"
        await asyncio.sleep(50)
        assert (await visitor.log_in("alice", "secret", mechanism)).session_lifetime_ms == 60_000
        await asyncio.sleep(50)
        assert await asks_for_topics(visitor)
        await asyncio.sleep(11)
        assert not await asks_for_topics(visitor), "its time is over"

    with_logins(story, REAUTH)


def test_a_session_that_is_over_may_still_log_in_again() -> None:
    async def story(door: Door) -> None:
        visitor = await Visitor.come(door)
        await visitor.log_in("alice", "secret", "PLAIN")
        await asyncio.sleep(100)
        assert (await visitor.log_in("alice", "secret", "PLAIN")).error_code == ErrorCode.NONE
        assert await asks_for_topics(visitor)

    with_logins(story, REAUTH)


@pytest.mark.parametrize(
    ("name", "password", "mechanism"),
    [
        pytest.param("bob", "other", "SCRAM-SHA-256", id="as another"),
        pytest.param("alice", "wrong", "SCRAM-SHA-256", id="by a wrong password"),
        pytest.param("alice", "secret", "PLAIN", id="by another mechanism"),
    ],
)
def test_who_logs_in_again_keeps_name_and_mechanism_or_leaves(
    name: str, password: str, mechanism: str
) -> None:
    async def story(door: Door) -> None:
        await set_user(door, "bob", "other")
        visitor = await Visitor.come(door)
        await visitor.log_in("alice", "secret", "SCRAM-SHA-256")
        await asyncio.sleep(2)
        shaken = await visitor.handshake(mechanism)
        if mechanism == "PLAIN":
            assert shaken.error_code == ILLEGAL
        else:
            from scramp import ScramClient

            client = ScramClient([mechanism], name, password)
            first = await visitor.token(client.get_client_first().encode())
            client.set_server_first(first.auth_bytes.decode())
            answer = await visitor.token(client.get_client_final().encode())
            assert (answer.error_code, answer.error_message) == (FAILED, REFUSED)
        assert not await asks_for_topics(visitor)

    with_logins(story, REAUTH)


def test_nothing_is_served_while_somebody_logs_in_again() -> None:
    async def story(door: Door) -> None:
        visitor = await Visitor.come(door)
        await visitor.log_in("alice", "secret", "SCRAM-SHA-256")
        await asyncio.sleep(2)
        await visitor.handshake("SCRAM-SHA-256")
        assert not await asks_for_topics(visitor)

    with_logins(story, REAUTH)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "PLAIN"])
@pytest.mark.parametrize("is_removed", [False, True])
def test_a_session_ends_with_the_credential_that_it_proved(mechanism: str, is_removed: bool) -> None:
    async def story(door: Door) -> None:
        visitor = await Visitor.come(door)
        await visitor.log_in("alice", "secret", mechanism)
        await set_user(door, "bob", "other")
        await set_user(door, "alice", "another", Mechanism.SHA_512)
        assert await asks_for_topics(visitor), "others, and another mechanism, are nothing to it"
        if is_removed:
            await remove_user(door, "alice")
        else:
            await set_user(door, "alice", "changed")
        assert not await asks_for_topics(visitor)
        again = await Visitor.come(door)
        assert (await again.log_in("alice", "secret", "SCRAM-SHA-256")).error_code == FAILED
        if not is_removed:
            again = await Visitor.come(door)
            answer = await again.log_in("alice", "changed", "SCRAM-SHA-256")
            assert answer.error_code == ErrorCode.NONE

    with_logins(story)


def test_a_password_that_was_right_is_not_remembered_beyond_its_credential() -> None:
    async def story(door: Door) -> None:
        for _ in range(2):
            visitor = await Visitor.come(door)
            assert (await visitor.log_in("alice", "secret", "PLAIN")).error_code == ErrorCode.NONE
        await set_user(door, "alice", "changed")
        visitor = await Visitor.come(door)
        assert (await visitor.log_in("alice", "secret", "PLAIN")).error_code == FAILED
        await remove_user(door, "alice")
        visitor = await Visitor.come(door)
        assert (await visitor.log_in("alice", "changed", "PLAIN")).error_code == FAILED

    with_logins(story)


def test_equal_failures_are_said_once_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    async def story(door: Door) -> None:
        caplog.set_level(logging.WARNING)
        with capture_logs() as said:
            for number in range(5):
                visitor = await Visitor.come(door)
                await visitor.log_in(f"guess{number}", "secret", "PLAIN")
            visitor = await Visitor.come(door)
            await visitor.log_in("alice", "wrong", "PLAIN")
        lines = [line for line in said if line["event"] == "a login failed"]
        assert [(line["reason"], line["failed_count"]) for line in lines] == [
            ("PLAIN: there is no such user", 1),
            ("PLAIN: the password is wrong", 6),
        ]

    with_logins(story)


def test_logins_are_kept_account_of(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    async def story(door: Door) -> None:
        await (await Visitor.come(door)).log_in("alice", "secret", "PLAIN")
        await (await Visitor.come(door)).log_in("nobody", "secret", "PLAIN")
        await door.node.stop()

    with_logins(story, "audit.file=-")
    said = capsysbinary.readouterr().err
    events = [json.loads(line) for line in said.splitlines() if line.startswith(b'{"class_uid":3002')]
    assert [(event["user"]["name"], event["status"], event["src_endpoint"]["ip"]) for event in events] == [
        ("alice", "Success", HERE),
        ("nobody", "Failure", HERE),
    ]
    assert b"secret" not in said
