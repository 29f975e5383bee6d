"""SCRAM and PLAIN from the server's side: vectors, and messages of all kinds from a client that means no good."""

import asyncio
import random
from base64 import b64decode
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scramp import ScramClient

from ropewalk.base.errors import AuthenticationFailed, Throttled
from ropewalk.base.limits import PASSWORD_CHECKS_WAITING_MAX, PASSWORDS_REMEMBERED_MS
from ropewalk.security.decoys import decoy
from ropewalk.security.plain import PasswordChecks, parse_plain
from ropewalk.security.scram import (
    Found,
    Mechanism,
    ScramConversation,
    ScramCredential,
    credential_of,
    salted,
)

SHA_256 = Mechanism.SHA_256
SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
PENCIL = credential_of(SHA_256, salted(SHA_256, b"pencil", SALT, 4096), SALT, 4096)


def conversation(nonce: str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0") -> ScramConversation:
    def find(name: str) -> Found:
        made = decoy(b"key", SHA_256, name, iterations=4096, salt_bytes=16)
        return Found(PENCIL) if name == "user" else Found(made, is_decoy=True)

    return ScramConversation(SHA_256, nonce, find)


def test_the_example_of_rfc_7677() -> None:
    talk = conversation()
    first = talk.on_first(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert first == b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    final = talk.on_final(
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert final == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert (talk.name, talk.credential) == ("user", PENCIL)


@pytest.mark.parametrize("name", ["a,b", "a=b", "=2C", "x" * 255])
def test_names_with_the_characters_that_are_escaped(name: str) -> None:
    talk = ScramConversation(SHA_256, "server", lambda said: Found(PENCIL, is_decoy=said != name))
    client = ScramClient(["SCRAM-SHA-256"], name, "pencil")
    client.set_server_first(talk.on_first(client.get_client_first().encode()).decode())
    client.set_server_final(talk.on_final(client.get_client_final().encode()).decode())
    assert talk.name == name


PIECES = st.sampled_from(
    [
        "n,,",
        "y,,",
        "p=x,,",
        "n=user",
        "r=abc",
        ",",
        "=",
        "c=biws",
        "p=AAAA",
        "m=1",
        "a=b",
        "n=",
        "\0",
        "é",
        "e=",
        "i=1",
    ]
)
MESSAGES = st.one_of(
    st.binary(max_size=200),
    st.lists(PIECES, max_size=12).map(lambda parts: "".join(parts).encode()),
    st.lists(PIECES, max_size=12).map(lambda parts: ",".join(parts).encode()),
)


@settings(max_examples=300, deadline=None)
@given(first=MESSAGES, final=MESSAGES)
def test_no_message_does_anything_but_fail(first: bytes, final: bytes) -> None:
    talk = conversation()
    try:
        talk.on_first(first)
    except AuthenticationFailed:
        return
    with pytest.raises(AuthenticationFailed):
        talk.on_final(final)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_last_message_that_was_changed_anywhere_proves_nothing(data: st.DataObject) -> None:
    talk = conversation()
    client = ScramClient(["SCRAM-SHA-256"], "user", "pencil")
    client.set_server_first(talk.on_first(client.get_client_first().encode()).decode())
    right = client.get_client_final().encode()
    place = data.draw(st.integers(0, len(right) - 3))  # the end of base64 has bits that say nothing
    wrong = right[:place] + bytes([right[place] ^ data.draw(st.integers(1, 127))]) + right[place + 1 :]
    with pytest.raises(AuthenticationFailed):
        talk.on_final(wrong)


def test_nobody_logs_in_as_a_decoy() -> None:
    """Not even with the keys that it was made of, which nobody can know."""
    talk = ScramConversation(SHA_256, "server", lambda _: Found(PENCIL, is_decoy=True))
    client = ScramClient(["SCRAM-SHA-256"], "user", "pencil")
    client.set_server_first(talk.on_first(client.get_client_first().encode()).decode())
    with pytest.raises(AuthenticationFailed, match="no such user"):
        talk.on_final(client.get_client_final().encode())


def test_a_decoy_is_the_same_every_time_and_another_for_every_name_key_and_mechanism() -> None:
    def made(key: bytes = b"k", mechanism: Mechanism = SHA_256, name: str = "n") -> ScramCredential:
        return decoy(key, mechanism, name, iterations=5000, salt_bytes=20)

    assert made() == made()
    assert (made().iterations, len(made().salt)) == (5000, 20)
    salts = {made().salt, made(b"l").salt, made(mechanism=Mechanism.SHA_512).salt, made(name="m").salt}
    assert len(salts) == 4


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"alice\0secret", id="two parts"),
        pytest.param(b"\0alice\0sec\0ret", id="four parts"),
        pytest.param(b"\0\0secret", id="no name"),
        pytest.param(b"\0alice\0", id="no password"),
        pytest.param(b"bob\0alice\0secret", id="as another"),
        pytest.param(b"\0\xff\0secret", id="not UTF-8"),
        pytest.param(b"\0alice\0" + b"x" * 2048, id="too long"),
    ],
)
def test_messages_of_plain_that_are_none(message: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        parse_plain(message)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=100))
def test_plain_is_read_or_refused(message: bytes) -> None:
    try:
        name, password = parse_plain(message)
    except AuthenticationFailed:
        return
    assert message.endswith(b"\0" + name.encode() + b"\0" + password)


class HandPool:
    """Calls run when they are told to, and are counted."""

    def __init__(self) -> None:
        self.waiting: list[tuple[asyncio.Future[object], Callable[[], object]]] = []
        self.count = 0

    def run(self, function, *arguments):  # type: ignore[no-untyped-def]
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self.waiting.append((future, lambda: function(*arguments)))
        return future

    def finish_one(self) -> None:
        future, call = self.waiting.pop(0)
        self.count += 1
        future.set_result(call())

    async def drain(self) -> None:
        raise AssertionError("nobody drains it here")


class HandClock:
    at_ms = 0.0

    def now_ms(self) -> int:
        return int(self.at_ms)

    def monotonic_ms(self) -> float:
        return self.at_ms


def test_passwords_are_hashed_one_at_a_time_by_a_line_that_ends() -> None:
    async def main() -> None:
        pool, clock = HandPool(), HandClock()
        checks = PasswordChecks(pool, clock, random.Random(0))
        cheap = credential_of(SHA_256, salted(SHA_256, b"right", SALT, 1), SALT, 1)

        def ask(password: bytes) -> "asyncio.Task[bool]":
            return asyncio.get_running_loop().create_task(checks.proves(password, "alice", SHA_256, cheap))

        tasks = [ask(b"%d" % number) for number in range(PASSWORD_CHECKS_WAITING_MAX)]
        tasks.append(ask(b"right"))
        await asyncio.sleep(0)
        too_late = ask(b"late")
        with pytest.raises(Throttled):
            await too_late
        while not all(task.done() for task in tasks):
            assert len(pool.waiting) <= 1, "one at a time"
            if pool.waiting:
                pool.finish_one()
            await asyncio.sleep(0)
        assert [task.result() for task in tasks] == [False] * PASSWORD_CHECKS_WAITING_MAX + [True]
        hashed = pool.count
        assert await checks.proves(b"right", "alice", SHA_256, cheap), "remembered"
        assert pool.count == hashed
        clock.at_ms += PASSWORDS_REMEMBERED_MS
        again = ask(b"right")
        await asyncio.sleep(0)
        pool.finish_one()
        assert await again
        assert pool.count == hashed + 1, "not for ever"

    asyncio.run(main())
