"""A session that logs in to brokers, over TLS: what is read is written, and no plan shows the password."""

import contextlib
import io
from collections.abc import Iterator
from typing import Any

import pytest

from ropewalk import Admin, Producer
from tests.compat.node_process import NodeProcess
from tests.compat.secured_kafka import PASSWORD, USER, Doors
from tests.compat.secured_ropewalk import start_secured

COUNT = 40
QUOTED = PASSWORD.replace('"', '\\"')
JAAS = (
    f'org.apache.kafka.common.security.scram.ScramLoginModule required username="{USER}" password="{QUOTED}";'
)


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    nodes: list[NodeProcess] = []

    def start_node(*arguments: str) -> NodeProcess:
        nodes.append(NodeProcess(tmp_path_factory.mktemp("node"), *arguments))
        return nodes[-1]

    yield start_secured(start_node, tmp_path_factory.mktemp("doors"))
    for node in nodes:
        node.stop()


def test_a_job_for_sparks_own_connector_logs_in_as_it_is_and_keeps_its_password_to_itself(
    spark: Any, doors: Doors
) -> None:
    login: dict[str, Any] = {
        "security_protocol": "SASL_SSL",
        "ssl_ca_location": str(doors.ca),
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_username": USER,
        "sasl_password": PASSWORD,
    }
    with Admin(doors.safe, **login) as admin:
        for topic in ("in", "out"):
            admin.create_topic(topic, partitions=1)
    with Producer(doors.safe, **login) as producer:
        for number in range(COUNT):
            producer.send("in", b"%d" % number, partition=0)
    options = {
        "kafka.bootstrap.servers": doors.safe,
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-256",
        "kafka.sasl.jaas.config": JAAS,
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": str(doors.ca),
    }
    given = spark.read.format("ropewalk").options(**options).option("subscribe", "in").load()
    given.select("value").write.format("ropewalk").options(**options).option("topic", "out").mode(
        "append"
    ).save()
    written = spark.read.format("ropewalk").options(**options).option("subscribe", "out").load()
    assert written.count() == COUNT
    plan = io.StringIO()
    with contextlib.redirect_stdout(plan):
        written.explain("extended")
    assert PASSWORD not in plan.getvalue()
    assert QUOTED not in plan.getvalue()
