"""How a client proves who it is: every mechanism, what a broker may answer, and sessions that end while requests are on their way."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

import pytest

from ropewalk.base.errors import InvalidSetting
from ropewalk.base.ids import TopicPartition
from ropewalk.client.calls.client import Client
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.security import ClientSecurity, security_from
from ropewalk.client.connections.settings import ClientSettings
from ropewalk.client.errors import AuthenticationFailed, ConnectionLost, NotAdmitted, TlsFailed, Unreachable
from ropewalk.records.codec import Codec
from ropewalk.records.record import Record, build
from ropewalk.runtime.clock import SystemClock
from ropewalk.runtime.network import TcpNetwork
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import metadata, sasl_handshake
from tests.client.fake_broker import FakeBroker, FakeCluster
from tests.client.fake_cluster import Stage, on_stage
from tests.client.fake_login import PASSWORD, REFUSAL, TOKEN, USER, FakeLogin
from tests.security.authority import Authority, authority

EVERY_MECHANISM = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]


def login_by(mechanism: str, **more: object) -> ClientSettings:
    who: dict[str, object] = {"sasl_username": USER, "sasl_password": PASSWORD}
    if mechanism == "OAUTHBEARER":
        who = {"sasl_oauthbearer_token": lambda: TOKEN}
    named = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": mechanism, **who, **more}
    return ClientSettings(security=security_from(named))


def refused(login: FakeLogin | None, settings: ClientSettings) -> NotAdmitted:
    """What the caller is told by a cluster that does not let it in, and that it is told at once."""

    async def story(stage: Stage) -> NotAdmitted:
        broker = await stage.add_broker(login=login)
        with pytest.raises(NotAdmitted) as told:
            async with stage.client(settings=settings):
                pytest.fail("it was let in")
        assert broker.connection_count == 1
        assert stage.now_ms < 5_000
        assert PASSWORD not in repr(told.value)
        assert TOKEN not in repr(told.value)
        return told.value

    return on_stage(story)


@pytest.mark.parametrize("mechanism", EVERY_MECHANISM)
def test_every_connection_logs_in_before_anything_is_asked(mechanism: str) -> None:
    async def story(stage: Stage) -> None:
        login = FakeLogin()
        brokers = [await stage.add_broker(login=login) for _ in range(2)]
        stage.cluster.add_topic("orders", 1)
        async with stage.client(settings=login_by(mechanism)) as client:
            await client.produce("orders", 0, build([Record(value=b"rope")], codec=Codec.NONE))
        assert login.logins == [mechanism, mechanism]
        assert [broker.connection_count for broker in brokers] == [1, 1]
        assert [broker.cut_off_count for broker in brokers] == [0, 0]

    on_stage(story)


def test_a_token_function_may_wait() -> None:
    async def story(stage: Stage) -> None:
        async def token() -> str:
            await asyncio.sleep(0.1)
            return TOKEN

        login = FakeLogin()
        await stage.add_broker(login=login)
        async with stage.client(settings=login_by("OAUTHBEARER", sasl_oauthbearer_token=token)):
            assert login.logins == ["OAUTHBEARER"]

    on_stage(story)


@pytest.mark.parametrize("mechanism", EVERY_MECHANISM)
def test_who_is_refused_hears_the_brokers_own_words_at_once(mechanism: str) -> None:
    wrong = (
        {"sasl_oauthbearer_token": lambda: "foreign"}
        if mechanism == "OAUTHBEARER"
        else {"sasl_password": "x"}
    )
    error = refused(FakeLogin(), login_by(mechanism, **wrong))
    assert isinstance(error, AuthenticationFailed)
    assert REFUSAL in error.reason
    assert mechanism in error.reason


@pytest.mark.parametrize(
    ("login", "mechanism", "said"),
    [
        pytest.param(
            FakeLogin(mechanisms=("SCRAM-SHA-512",)),
            "PLAIN",
            "does not take sasl_mechanism=PLAIN; it takes SCRAM-SHA-512",
            id="another mechanism",
        ),
        pytest.param(
            FakeLogin(handshake_code=ErrorCode.ILLEGAL_SASL_STATE),
            "PLAIN",
            "wants no login there: set security_protocol",
            id="a listener without a login",
        ),
        pytest.param(None, "PLAIN", "offers no login", id="a broker without logins"),
        pytest.param(
            FakeLogin(knows_password=False),
            "SCRAM-SHA-256",
            "the broker is not trusted: it could not prove",
            id="a server without the password's proof",
        ),
        pytest.param(
            FakeLogin(iterations=4095), "SCRAM-SHA-256", "hashed 4095 times", id="too few iterations"
        ),
        pytest.param(
            FakeLogin(iterations=2_000_000), "SCRAM-SHA-512", "hashed 2000000 times", id="too many iterations"
        ),
    ],
)
def test_a_broker_that_does_not_do_as_it_must_is_left_with_a_reason(
    login: FakeLogin | None, mechanism: str, said: str
) -> None:
    assert said in refused(login, login_by(mechanism)).reason


def test_a_broker_too_old_for_messages_of_a_mechanism_is_refused() -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker(login=FakeLogin(), version_max={sasl_handshake.API.key: 0})
        with pytest.raises(AuthenticationFailed, match="too old"):
            async with stage.client(settings=login_by("PLAIN")):
                pass

    on_stage(story)


def test_a_broker_that_is_silent_in_the_login_is_unreachable() -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker(login=FakeLogin(is_silent=True))
        with pytest.raises(Unreachable, match="the login did not come to an end"):
            async with stage.client(settings=login_by("PLAIN")):
                pass

    on_stage(story)


def test_who_does_not_log_in_where_that_is_wanted_is_told_what_to_set() -> None:
    async def story(stage: Stage) -> None:
        await stage.add_broker(login=FakeLogin())
        with pytest.raises(ConnectionLost, match="where it wants a login, set security_protocol"):
            async with stage.client(settings=ClientSettings(request_timeout_ms=500)):
                pass

    on_stage(story)


def test_a_session_is_renewed_before_its_end_and_no_request_is_lost() -> None:
    async def story(stage: Stage) -> None:
        login = FakeLogin(lifetime_ms=3_000)
        broker = await stage.add_broker(login=login)
        stage.cluster.add_topic("orders", 0)
        async with stage.client(settings=login_by("SCRAM-SHA-256")) as client:
            # Long polls are under way, and many short requests, whenever a session comes to its end.
            async def poll() -> None:
                while stage.now_ms < 20_000:
                    await client.fetch({TopicPartition("orders", 0): 0}, wait_ms=700)

            async def ask() -> None:
                while stage.now_ms < 20_000:
                    await client.metadata(["orders"])
                    await asyncio.sleep(0.02)

            await asyncio.gather(poll(), ask(), ask(), ask())
        assert broker.cut_off_count == 0
        assert broker.connection_count == 2
        assert len(login.logins) >= 2 * 6

    on_stage(story)


def test_what_is_sent_while_a_session_is_renewed_follows_in_order() -> None:
    async def story(stage: Stage) -> None:
        broker = await stage.add_broker()
        async with stage.client() as client:
            connection = await client.session.cluster.any_connection(deadline_ms=stage.now_ms + 1_000)
            version = connection.versions.choose(metadata.API)

            def ask(name: str) -> "asyncio.Future[metadata.MetadataResponse]":
                request = metadata.MetadataRequest(topics=(metadata.MetadataRequestTopic(name=name),))
                return connection.send(metadata.API, version, request, deadline_ms=stage.now_ms + 5_000)

            before = ask("before")
            async with connection.alone():
                assert before.done()
                kept = [ask("first"), ask("second")]
                alone = metadata.MetadataRequest(topics=(metadata.MetadataRequestTopic(name="alone"),))
                await connection.call_alone(metadata.API, alone, deadline_ms=stage.now_ms + 1_000)
                assert not any(answer.done() for answer in kept)
            named = [(await answer).topics[0].name for answer in kept]
        assert named == ["first", "second"]
        asked = [
            each.topics[0].name
            for each in broker.requests
            if isinstance(each, metadata.MetadataRequest) and each.topics
        ]
        assert asked == ["before", "alone", "first", "second"]

    on_stage(story)


def test_who_is_refused_at_a_renewal_is_told_and_nothing_is_in_doubt() -> None:
    async def story(stage: Stage) -> None:
        login = FakeLogin(lifetime_ms=2_000)
        await stage.add_broker(login=login)
        async with stage.client(settings=login_by("PLAIN")) as client:
            login.passwords[USER] = "another"

            async def ask() -> None:
                while stage.now_ms < 10_000:
                    await client.metadata([])
                    await asyncio.sleep(0.01)

            with pytest.raises(AuthenticationFailed, match=REFUSAL):
                await ask()
        assert stage.now_ms < 2_500

    on_stage(story)


# TLS


def tls_settings(tmp_path: Path, **more: str) -> ClientSettings:
    trust = authority().trust(tmp_path / "ca.pem")
    named = {"security_protocol": "SSL", "ssl_ca_location": str(trust), **more}
    return ClientSettings(security=security_from(named))


def server_context(tmp_path: Path, *names: str) -> Callable[[], ssl.SSLContext]:
    keystore = authority().issue(tmp_path / "server.pem", *(names or ("localhost", "127.0.0.1")))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(keystore)
    return lambda: context


class Loopback:
    """A broker on a real socket: certificates and passwords lie in files, which no simulated run may open."""

    def __init__(self, broker: FakeBroker, address: Address) -> None:
        self.broker = broker
        self.address = address

    def client(self, settings: ClientSettings) -> Client:
        return Client(TcpNetwork(), SystemClock(), Random(1), (self.address,), settings)

    def hang_up(self) -> None:
        for transport in self.broker._connections:
            transport.abort()


def on_loopback(
    story: Callable[[Loopback], Awaitable[None]],
    *,
    tls: Callable[[], ssl.SSLContext] | None = None,
    login: FakeLogin | None = None,
) -> None:
    async def play() -> None:
        broker = FakeBroker(FakeCluster(), 0, login=login, tls=tls)
        address = await broker.start(TcpNetwork())
        try:
            await story(Loopback(broker, address))
        finally:
            broker.stop()

    asyncio.run(play())


def with_tls(
    contexts: Callable[[], ssl.SSLContext] | None,
    settings: ClientSettings,
    *,
    login: FakeLogin | None = None,
) -> None:
    """Ask for something once, and see that nobody knocks twice."""

    async def story(loopback: Loopback) -> None:
        try:
            async with loopback.client(settings) as client:
                await client.metadata([])
        finally:
            assert loopback.broker.connection_count <= 1

    on_loopback(story, tls=contexts, login=login)


def test_brokers_are_spoken_to_over_tls_and_by_name(tmp_path: Path) -> None:
    with_tls(server_context(tmp_path), tls_settings(tmp_path))


def test_a_login_goes_over_tls(tmp_path: Path) -> None:
    login = FakeLogin()
    settings = tls_settings(
        tmp_path,
        security_protocol="SASL_SSL",
        sasl_mechanism="PLAIN",
        sasl_username=USER,
        sasl_password=PASSWORD,
    )
    with_tls(server_context(tmp_path), settings, login=login)
    assert login.logins == ["PLAIN"]


def test_another_name_in_the_certificate_is_refused_unless_names_are_not_looked_at(tmp_path: Path) -> None:
    elsewhere = server_context(tmp_path, "b7")
    with pytest.raises(
        TlsFailed, match=r"certificate is for another host.*ssl_endpoint_identification_algorithm"
    ):
        with_tls(elsewhere, tls_settings(tmp_path))
    with_tls(elsewhere, tls_settings(tmp_path, ssl_endpoint_identification_algorithm="none"))


def test_an_unknown_authority_is_refused_with_what_to_set(tmp_path: Path) -> None:
    keystore = authority("theirs").issue(tmp_path / "theirs.pem", "127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(keystore)
    with pytest.raises(TlsFailed, match=r"is not trusted .*: set ssl_ca_location"):
        with_tls(lambda: context, tls_settings(tmp_path))


def test_an_expired_certificate_is_refused_as_that(tmp_path: Path) -> None:
    settings = tls_settings(tmp_path, ssl_endpoint_identification_algorithm="none")
    with pytest.raises(TlsFailed, match="its certificate has expired"):
        with_tls(authority().expired_server, settings)


def test_a_broker_without_tls_is_told_from_one_with_a_bad_certificate(tmp_path: Path) -> None:
    with pytest.raises((TlsFailed, Unreachable)) as told:
        with_tls(None, tls_settings(tmp_path))
    assert "TLS" in str(told.value)


def test_who_speaks_plain_to_a_broker_with_tls_is_told_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="set security_protocol to SSL or SASL_SSL"):
        with_tls(server_context(tmp_path), ClientSettings(connect_timeout_ms=500))


def client_certificate(tmp_path: Path, name: str, whose: Authority | None = None) -> dict[str, str]:
    keystore = (whose or authority()).issue(tmp_path / f"{name}.pem", name)
    return {"ssl_certificate_location": str(keystore)}


def demanding(tmp_path: Path) -> Callable[[], ssl.SSLContext]:
    """A server that wants its clients' certificates."""
    keystore = authority().issue(tmp_path / "server.pem", "127.0.0.1")
    trust = authority().trust(tmp_path / "ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(keystore)
    context.load_verify_locations(trust)
    context.verify_mode = ssl.CERT_REQUIRED
    return lambda: context


def test_a_clients_certificate_is_presented_where_it_is_asked_for(tmp_path: Path) -> None:
    with_tls(demanding(tmp_path), tls_settings(tmp_path, **client_certificate(tmp_path, "ada")))


def test_without_the_certificate_that_is_asked_for_the_caller_is_told_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(
        TlsFailed, match="may want a certificate of this client: set ssl_certificate_location"
    ):
        with_tls(demanding(tmp_path), tls_settings(tmp_path))


def test_a_certificate_of_another_authority_is_refused_by_the_broker_in_words(tmp_path: Path) -> None:
    settings = tls_settings(tmp_path, **client_certificate(tmp_path, "eve", authority("theirs")))
    with pytest.raises(TlsFailed, match="refuses this client's certificate"):
        with_tls(demanding(tmp_path), settings)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("ssl_ca_location", None, "cannot be read: No such file"),
        ("ssl_ca_location", "nothing", "there is no certificate in PEM"),
        ("ssl_certificate_location", None, "cannot be read: No such file"),
        ("ssl_certificate_location", "nothing", "has no certificate, or no key"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_its_setting(
    tmp_path: Path, name: str, content: str | None, said: str
) -> None:
    path = tmp_path / "file.pem"
    if content is not None:
        path.touch(mode=0o600)
        path.write_text(content)
    with pytest.raises(InvalidSetting, match=f"{name}: .*{said}"):
        with_tls(server_context(tmp_path), tls_settings(tmp_path, **{name: str(path)}))


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    given = client_certificate(tmp_path, "ada")
    Path(given["ssl_certificate_location"]).chmod(0o644)
    with pytest.raises(InvalidSetting, match=r"others than its owner may use .* run chmod 600"):
        with_tls(demanding(tmp_path), tls_settings(tmp_path, **given))


def test_certificates_are_read_again_when_they_have_changed(tmp_path: Path) -> None:
    settings = tls_settings(tmp_path)
    theirs = authority("theirs").trust(tmp_path / "theirs.pem")

    async def story(loopback: Loopback) -> None:
        async with loopback.client(settings) as client:
            Path(settings.security.ssl_ca_location or "").write_bytes(theirs.read_bytes())
            loopback.hang_up()
            with pytest.raises(TlsFailed, match="is not trusted"):
                await client.metadata([])

    on_loopback(story, tls=server_context(tmp_path))


def test_a_password_file_is_read_for_every_login(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.touch(mode=0o600)
    secret.write_text(f"{PASSWORD}\n")
    login = FakeLogin()
    settings = login_by("SCRAM-SHA-512", sasl_password=None, sasl_password_file=str(secret))

    async def story(loopback: Loopback) -> None:
        async with loopback.client(settings) as client:
            secret.write_text("renewed")
            login.passwords[USER] = "renewed"
            loopback.hang_up()
            await client.metadata([])
            assert len(login.logins) == 2
            secret.chmod(0o640)
            loopback.hang_up()
            with pytest.raises(InvalidSetting, match="others than its owner may use"):
                await client.metadata([])

    on_loopback(story, login=login)


# What may be said


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"security_protocol": "TLS"}, "must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        (
            {"ssl_ca_location": "/ca"},
            "ssl_ca_location is set, but security_protocol is PLAINTEXT; say security_protocol=SSL",
        ),
        (
            {"sasl_username": "a"},
            "sasl_username is set, but security_protocol is PLAINTEXT; say security_protocol=SASL_SSL",
        ),
        ({"security_protocol": "SASL_SSL"}, "say sasl_mechanism"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI"}, "must be PLAIN, SCRAM-SHA-256"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN"}, "say sasl_username and sasl_password"),
        (
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"},
            "give sasl_oauthbearer_token, a function",
        ),
        (
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER", "sasl_username": "a"},
            "a token says who it is",
        ),
        (
            {
                "security_protocol": "SASL_SSL",
                "sasl_mechanism": "OAUTHBEARER",
                "sasl_oauthbearer_token_endpoint_url": "http://issuer/token",
                "sasl_oauthbearer_client_id": "a",
                "sasl_oauthbearer_client_secret": "b",
            },
            "without TLS the client's secret would be read",
        ),
        ({"security_protocol": "SSL", "ssl_key_location": "/key"}, "say ssl_certificate_location, too"),
        (
            {"security_protocol": "SSL", "ssl_endpoint_identification_algorithm": "dns"},
            "must be https, or none",
        ),
        ({"security_protocol": "SASL_SSL", "sasl_password": "a", "sasl_password_file": "b"}, "not both"),
    ],
)
def test_settings_that_do_not_go_together_are_refused_with_what_to_do(
    named: dict[str, str], said: str
) -> None:
    with pytest.raises(InvalidSetting) as told:
        security_from(named)
    assert said in str(told.value)


def test_no_secret_is_shown_where_settings_are_shown() -> None:
    security = security_from(
        {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "PLAIN",
            "sasl_username": USER,
            "sasl_password": PASSWORD,
            "ssl_certificate_location": "/c",
            "ssl_key_password": "key-secret",
        }
    )
    shown = repr(security) + str(security) + repr(ClientSettings(security=security))
    assert USER in shown
    assert PASSWORD not in shown
    assert "key-secret" not in shown


def test_names_of_java_and_librdkafka_are_taken() -> None:
    security = security_from(
        {
            "security_protocol": "sasl_ssl",
            "sasl_mechanisms": "scram-sha-256",
            "sasl_username": "a",
            "sasl_password": "b",
            "ssl_endpoint_identification_algorithm": "",
        }
    )
    assert (security.security_protocol, security.sasl_mechanism) == ("SASL_SSL", "SCRAM-SHA-256")
    assert security.ssl_endpoint_identification_algorithm == "none"


def test_a_login_without_a_password_is_refused_before_anybody_is_asked() -> None:
    named = {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_username": "a"}
    assert isinstance(security_from(named), ClientSecurity)
    with pytest.raises(InvalidSetting, match="give sasl_password, or sasl_password_file"):
        with_tls(None, ClientSettings(security=security_from(named)))
