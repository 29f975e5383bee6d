"""How jobs log in: options by librdkafka's names and by Java's, for the source, the sink and everything else of a pipeline, and where secrets go."""

import pickle
from collections.abc import Callable, Mapping

import pytest

pytest.importorskip("pyspark")

from ropewalk.client.connections.security import NO_SECURITY, ClientSecurity
from ropewalk.spark.options import parse_source
from ropewalk.spark.pipelines.definition import Table, define
from ropewalk.spark.pipelines.transform_settings import TransformSettings
from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.security import security_of
from ropewalk.spark.sink.options import parse_sink

SECRET = "rope-yarn"
SCRAM = {
    "kafka.security.protocol": "SASL_SSL",
    "kafka.sasl.mechanism": "SCRAM-SHA-512",
    "kafka.sasl.username": "ada",
    "kafka.sasl.password": SECRET,
    "kafka.ssl.ca.location": "/etc/ca.pem",
}
MODULES = "org.apache.kafka.common.security"


def of_source(options: Mapping[str, str]) -> ClientSecurity:
    given = {"bootstrap": "b:1", "subscribe": "orders", **options}
    return parse_source(given, streaming=True).client.security


def of_sink(options: Mapping[str, str]) -> ClientSecurity:
    return parse_sink({"bootstrap": "b:1", "topic": "orders", **options}, streaming=True).settings.security


@pytest.mark.parametrize("of", [of_source, of_sink, security_of])
def test_source_sink_and_the_rest_of_a_job_log_in_alike(
    of: Callable[[Mapping[str, str]], ClientSecurity],
) -> None:
    security = of(SCRAM)
    assert (security.security_protocol, security.sasl_mechanism) == ("SASL_SSL", "SCRAM-SHA-512")
    assert (security.sasl_username, security.ssl_ca_location) == ("ada", "/etc/ca.pem")
    assert security.sasl_password is not None
    assert security.sasl_password.reveal() == SECRET


@pytest.mark.parametrize(
    ("jaas", "mechanism", "expected"),
    [
        (
            f'{MODULES}.scram.ScramLoginModule required username="ada" password="rope\\"yarn";',
            "SCRAM-SHA-256",
            ("ada", 'rope"yarn'),
        ),
        (
            f"{MODULES}.plain.PlainLoginModule required username='ada' password='x y=z;';",
            "PLAIN",
            ("ada", "x y=z;"),
        ),
        (f"{MODULES}.plain.PlainLoginModule  required\n username=ada\n password=x ;", "PLAIN", ("ada", "x")),
    ],
)
def test_jaas_as_java_writes_it_is_read(jaas: str, mechanism: str, expected: tuple[str, str]) -> None:
    security = of_source(
        {
            "kafka.security.protocol": "SASL_SSL",
            "kafka.sasl.mechanism": mechanism,
            "kafka.sasl.jaas.config": jaas,
            "kafka.ssl.truststore.location": "/etc/ca.pem",
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.endpoint.identification.algorithm": "",
        }
    )
    assert security.sasl_password is not None
    assert (security.sasl_username, security.sasl_password.reveal()) == expected
    assert security.ssl_ca_location == "/etc/ca.pem"
    assert security.ssl_endpoint_identification_algorithm == "none"


def test_a_clients_certificate_is_a_keystore_to_java() -> None:
    security = of_source(
        {
            "kafka.security.protocol": "SSL",
            "kafka.ssl.keystore.location": "/etc/client.pem",
            "kafka.ssl.keystore.type": "PEM",
            "kafka.ssl.key.password": SECRET,
            "kafka.ssl.enabled.protocols": "TLSv1.3",
            "kafka.sasl.mechanism": "PLAIN",
        }
    )
    assert security.ssl_certificate_location == "/etc/client.pem"
    assert security.sasl_mechanism is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"kafka.ssl.truststore.location": "/a.jks"},
            "a store of type JKS, which only Java reads: write it as PEM",
        ),
        ({"kafka.ssl.keystore.key": SECRET}, "write them into a file"),
        ({"kafka.sasl.jaas.config": f"com.sun.security.Krb5 required password={SECRET};"}, "must be like"),
        ({"kafka.sasl.jaas.config": f"{MODULES}.ScramLoginModule required {SECRET};"}, "cannot be read"),
        ({"kafka.sasl.oauthbearer.jwks.endpoint.url": "x"}, "is not known; of security there are"),
        ({"kafka.sasl.username": "ada"}, "say sasl_username and sasl_password|say sasl_mechanism"),
    ],
)
def test_what_cannot_be_taken_is_refused_without_the_secret(options: dict[str, str], said: str) -> None:
    with pytest.raises(WrongUse, match=said) as told:
        of_source({"kafka.security.protocol": "SASL_SSL", **options})
    assert SECRET not in str(told.value)


def test_without_a_protocol_nothing_of_security_is_meant() -> None:
    assert of_source({"kafka.sasl.password": SECRET}) is NO_SECURITY


def test_what_tasks_are_given_shows_no_secret_and_still_has_it() -> None:
    options = parse_sink({"bootstrap": "b:1", "topic": "orders", **SCRAM}, streaming=True)
    assert SECRET not in repr(options)
    carried = pickle.loads(pickle.dumps(options))
    assert carried.settings.security.sasl_password.reveal() == SECRET


def test_a_job_that_says_nothing_logs_in_as_its_environment_says() -> None:
    environment = {
        "ROPEWALK_SECURITY_PROTOCOL": "SASL_SSL",
        "ROPEWALK_SASL_MECHANISM": "PLAIN",
        "ROPEWALK_SASL_USERNAME": "ada",
        "ROPEWALK_SASL_PASSWORD_FILE": "/run/password",
    }

    def job(source: dict[str, str | int | bool]) -> ClientSecurity:
        table = Table(
            kind="transform", bootstrap="b:1", topics=["orders"], source=source, settings={"sql": "x"}
        )
        made = define(
            "transform",
            {"transform": table},
            Table(checkpoint="/c"),
            settings_of=lambda _: TransformSettings,
            environment=environment,
        )
        return security_of(made.source)

    assert job({}).sasl_username == "ada"
    assert job({"kafka.security.protocol": "SSL"}).sasl_username is None
