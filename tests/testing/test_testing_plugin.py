"""The pytest plugin, in sessions of its own inside this one."""

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import confluent_kafka.admin  # noqa: F401  loaded once, not again by every inner session
import pytest
import uvloop  # noqa: F401  likewise

import ropewalk.testing.namespace  # noqa: F401  likewise

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.compat

ROOT = Path(__file__).resolve().parent.parent.parent

CLIENT = """
    import confluent_kafka.admin
    import pytest

    def write(bootstrap, topic, value):
        producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
        errors = []
        producer.produce(topic, value, on_delivery=lambda error, _: errors.append(error))
        producer.flush(20)
        assert errors == [None]

    def topics(bootstrap):
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
        return admin.list_topics(timeout=20).topics
"""


@pytest.fixture
def with_client(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(client=CLIENT)
    return pytester


def test_pytest_finds_the_plugin_by_itself() -> None:
    (found,) = entry_points(group="pytest11", name="ropewalk")
    assert found.value == "ropewalk.testing.plugin"


def test_a_session_that_does_not_use_it_does_not_load_it() -> None:
    program = "import sys, ropewalk.testing.plugin; print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert sorted(name for name in shown.split() if name.startswith("ropewalk")) == [
        "ropewalk",
        "ropewalk.base",
        "ropewalk.base.version",
        "ropewalk.testing",
        "ropewalk.testing.plugin",
    ]


def test_each_test_has_topics_of_its_own_on_one_node(with_client: pytest.Pytester) -> None:
    with_client.makepyfile(
        """
        from client import topics, write

        names = []

        def test_first(ropewalk, kafka_bootstrap):
            assert ropewalk.bootstrap == kafka_bootstrap
            names.append(ropewalk.topic("orders", partitions=2, retention_ms=-1))
            assert ropewalk.topic("orders") == names[0]
            assert ropewalk.group("billing") != "billing"
            write(kafka_bootstrap, names[0], b"mine")
            write(kafka_bootstrap, names[0] + ".retry", b"derived")
            assert [r.value for r in ropewalk.records(names[0])] == [b"mine"]
            assert set(topics(kafka_bootstrap)) == {names[0], names[0] + ".retry"}
            assert len(topics(kafka_bootstrap)[names[0]].partitions) == 2

        def test_second(ropewalk, kafka_bootstrap):
            assert list(topics(kafka_bootstrap)) == []
            assert ropewalk.topic("orders") != names[0]
            assert ropewalk.records(ropewalk.topic("orders")) == []
        """
    )
    with_client.runpytest_inprocess().assert_outcomes(passed=2)


def test_groups_end_with_their_test_unless_someone_is_still_in_them(with_client: pytest.Pytester) -> None:
    with_client.makepyfile(
        """
        import pytest
        from client import confluent_kafka, write

        left_open = []

        def groups(bootstrap):
            admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
            return [each.group_id for each in admin.list_consumer_groups().result(20).valid]

        @pytest.mark.parametrize("closes", [True, False])
        def test_first(ropewalk, closes):
            orders = ropewalk.topic("orders")
            write(ropewalk.bootstrap, orders, b"one")
            consumer = confluent_kafka.Consumer({
                "bootstrap.servers": ropewalk.bootstrap,
                "group.id": ropewalk.group("billing"),
                "auto.offset.reset": "earliest",
            })
            consumer.subscribe([orders])
            assert consumer.poll(20).value() == b"one"
            consumer.commit(asynchronous=False)
            if closes:
                consumer.close()
            else:
                left_open.append((consumer, ropewalk.group("billing")))

        def test_second(kafka_bootstrap):
            ((consumer, group),) = left_open
            assert groups(kafka_bootstrap) == [group]
            consumer.close()
        """
    )
    with_client.runpytest_inprocess().assert_outcomes(passed=3)


def test_options_and_settings_reach_the_node(
    with_client: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_client.makeini("[pytest]\nropewalk_settings =\n    num.partitions = 5\n")
    with_client.makepyfile(
        """
        from client import topics, write

        def test_it(kafka_bootstrap):
            write(kafka_bootstrap, "kept", b"x")
            assert len(topics(kafka_bootstrap)["kept"].partitions) == 5
        """
    )
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)  # of the run that this test is in
    with_client.runpytest_inprocess("--ropewalk-data", str(tmp_path / "plain")).assert_outcomes(passed=1)
    assert (tmp_path / "plain/kept-0").is_dir()
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw3")
    with_client.runpytest_inprocess("--ropewalk-data", str(tmp_path / "shared")).assert_outcomes(passed=1)
    assert (tmp_path / "shared/gw3/kept-0").is_dir()


def test_a_setting_that_makes_no_sense_is_an_error(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nropewalk_settings = num.partitions\n")
    pytester.makepyfile("def test_it(kafka_bootstrap): pass")
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*is not KEY=VALUE*"])


def test_two_hundred_tests_with_a_namespace_each_leave_nothing(
    with_client: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a process of its own: what other tests have left in this one opens and closes descriptors, too."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])))
    with_client.makepyfile(
        """
        import pytest
        from client import topics
        from ropewalk.base.limits import DISK_THREADS
        from tests.testing.test_testing_leaks import MEMORY_BYTES_MAX, held

        before = []

        @pytest.mark.parametrize("number", range(200))
        def test_one(number, ropewalk):
            if number == 20:
                before.append(held())
            assert ropewalk.records(ropewalk.topic("orders")) == []

        def test_nothing_is_left(kafka_bootstrap):
            # Objects are not compared: pytest itself keeps a report of every test.
            (then,), now = before, held()
            assert now.descriptors == then.descriptors
            assert now.threads - then.threads <= DISK_THREADS  # the node's pool grows by need
            assert now.tasks <= then.tasks
            assert now.memory_bytes - then.memory_bytes < MEMORY_BYTES_MAX
            assert list(topics(kafka_bootstrap)) == []
        """
    )
    with_client.runpytest_subprocess("-q").assert_outcomes(passed=201)
