"""Queues on a node for tests: fixtures, time that is moved, and what is left when a test is over."""

import re
import urllib.request

import boto3
import pytest

from ropewalk import Queue
from ropewalk.testing import Cluster

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.compat

TWELVE_HOURS_S = 12 * 3600


def figures(cluster: Cluster) -> dict[str, float]:
    page = urllib.request.urlopen(f"{cluster.http}/metrics", timeout=20).read().decode()
    return {
        name: float(value) for name, value in re.findall(r"^(ropewalk_queue\S+) (\S+)$", page, re.MULTILINE)
    }


def test_each_test_has_queues_of_its_own_and_boto3_finds_them(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import boto3

        names = []

        def test_first(ropewalk, sqs_endpoint, sqs_environment):
            assert ropewalk.sqs_endpoint == sqs_endpoint == sqs_environment
            jobs = ropewalk.queue("jobs", visibility_timeout=7)
            names.append(jobs.name)
            assert ropewalk.queue("jobs") == jobs
            sqs = boto3.client("sqs")
            assert sqs.get_queue_url(QueueName=jobs.name)["QueueUrl"] == jobs.url
            told = sqs.get_queue_attributes(QueueUrl=jobs.url, AttributeNames=["VisibilityTimeout"])
            assert told["Attributes"] == {"VisibilityTimeout": "7"}
            sqs.create_queue(QueueName=jobs.name + "-derived")
            assert ropewalk.queue("steps", fifo=True).name.endswith(".fifo")

        def test_second(ropewalk, sqs_environment):
            assert boto3.client("sqs").list_queues().get("QueueUrls", []) == []
            assert ropewalk.queue("jobs").name != names[0]
        """
    )
    pytester.runpytest_inprocess("-W", "error::pytest.PytestWarning").assert_outcomes(passed=2)


def test_a_message_becomes_visible_when_its_time_is_moved_past() -> None:
    with Cluster() as cluster:
        cluster.create_queue("jobs", visibility_timeout=TWELVE_HOURS_S)
        with Queue("jobs", endpoint=cluster.sqs) as queue:
            queue.send("rope")
            assert len(queue.receive(wait_s=1)) == 1
            cluster.advance(hours=11)
            assert queue.receive(wait_s=0) == []
            cluster.advance(hours=2)
            (again,) = queue.receive(wait_s=1)
            assert again.receive_count == 2


def test_a_poll_that_waits_hears_that_time_has_passed() -> None:
    with Cluster() as cluster:
        cluster.create_queue("jobs")
        sqs = boto3.client(
            "sqs",
            endpoint_url=cluster.sqs,
            region_name="us-east-1",
            aws_access_key_id="a",
            aws_secret_access_key="b",
        )
        with Queue("jobs", endpoint=cluster.sqs) as queue:
            queue.send("rope", delay_s=900)
            assert queue.receive(wait_s=0) == []
            cluster.advance(minutes=15)
            found = sqs.receive_message(QueueUrl=queue.url, WaitTimeSeconds=10)
            assert [message["Body"] for message in found["Messages"]] == ["rope"]


def test_messages_are_kept_for_their_retention_and_duplicates_for_five_minutes() -> None:
    with Cluster() as cluster:
        cluster.create_queue("steps.fifo", message_retention_period=3600)
        with Queue("steps.fifo", endpoint=cluster.sqs) as queue:
            first = queue.send("lay the keel", group="g", deduplication_id="1")
            assert queue.send("lay the keel", group="g", deduplication_id="1") == first
            cluster.advance(minutes=6)
            second = queue.send("lay the keel", group="g", deduplication_id="1")
            assert second.message_id != first.message_id
            cluster.advance(minutes=57)
            assert [each.message_id for each in queue.receive(wait_s=1)] == [second.message_id]


def test_what_was_received_in_vain_moves_to_the_dead_letters() -> None:
    with Cluster() as cluster:
        cluster.create_queue("dead")
        arn = "arn:aws:sqs:us-east-1:000000000000:dead"
        policy = f'{{"deadLetterTargetArn": "{arn}", "maxReceiveCount": 2}}'
        cluster.create_queue("jobs", redrive_policy=policy, visibility_timeout=60)
        with Queue("jobs", endpoint=cluster.sqs) as queue, Queue("dead", endpoint=cluster.sqs) as dead:
            sent = queue.send("rope", attributes={"n": 1})
            for _ in range(2):
                assert len(queue.receive(wait_s=5)) == 1
                cluster.advance(minutes=2)
            (letter,) = dead.receive(wait_s=10)
            assert (letter.message_id, letter.attributes) == (sent.message_id, {"n": 1})
            assert letter.system_attributes["DeadLetterQueueSourceArn"].endswith(":jobs")
            assert queue.receive(wait_s=0) == []
        assert figures(cluster)["ropewalk_queue_dlq_moved_total"] == 1


def test_what_was_acknowledged_survives_a_crash() -> None:
    with Cluster() as cluster:
        cluster.create_queue("jobs")
        with Queue("jobs", endpoint=cluster.sqs) as queue:
            queue.send_many(map(str, range(20)))
            queue.delete(*queue.receive(wait_s=1))
            cluster.kill()
            cluster.restart()
            left: set[str] = set()
            while len(left) < 10:
                left |= {message.body for message in queue.receive(wait_s=10)}
            assert left == {str(number) for number in range(10, 20)}


def test_figures_tell_how_a_queue_stands() -> None:
    with Cluster() as cluster:
        cluster.create_queue("jobs")
        with Queue("jobs", endpoint=cluster.sqs) as queue:
            queue.send_many(["a", "b", "c", "d"])
            queue.send("later", delay_s=600)
            received = queue.receive(3, wait_s=1)
            received[1].delete()
            received[2].release()
            assert len(queue.receive(1, wait_s=1, visibility_s=60)) == 1
            cluster.advance(seconds=20)
            told = figures(cluster)
            queue.delete(*queue.receive(wait_s=0))
            assert queue.receive(wait_s=0) == []
            emptied = figures(cluster)
        assert told['ropewalk_queue_messages{queue="jobs",state="inflight"}'] == 2
        assert told['ropewalk_queue_messages{queue="jobs",state="visible"}'] == 1
        assert told['ropewalk_queue_messages{queue="jobs",state="delayed"}'] == 1
        assert 20 <= told['ropewalk_queue_oldest_message_age_seconds{queue="jobs"}'] < 60
        assert told['ropewalk_queue_ack_holes{queue="jobs"}'] == 1
        assert told['ropewalk_queue_floor_lag_bytes{queue="jobs"}'] > 0
        assert told['ropewalk_queue_received_total{queue="jobs"}'] == 4
        assert 'ropewalk_queue_empty_receives_total{queue="jobs"}' in emptied
        assert emptied['ropewalk_queue_empty_receives_total{queue="jobs"}'] == 1


def test_a_queue_is_found_among_the_nodes_of_its_cluster() -> None:
    with Cluster() as cluster:
        with Queue("jobs", bootstrap=cluster.bootstrap, create=True) as queue:
            queue.send("rope")
            cluster.restart()
            with queue.receive(wait_s=10)[0] as message:
                assert message.body == "rope"
        assert cluster.queues() == ["jobs"]
        cluster.delete_queues(["jobs"])
        assert cluster.queues() == []


def test_figures_tell_what_holds_a_fifo_queue_up_and_whether_its_dead_letters_have_a_target() -> None:
    with Cluster() as cluster:
        cluster.create_queue("dead.fifo")
        arn = "arn:aws:sqs:us-east-1:000000000000:dead.fifo"
        policy = f'{{"deadLetterTargetArn": "{arn}", "maxReceiveCount": 2}}'
        cluster.create_queue("steps.fifo", redrive_policy=policy)
        with Queue("steps.fifo", endpoint=cluster.sqs) as queue:
            for number, group in enumerate(("a", "b", "b", "c")):
                queue.send("step", group=group, deduplication_id=str(number))
            assert len(queue.receive(3, wait_s=1)) == 3
            told = figures(cluster)
            assert told['ropewalk_queue_hidden_groups{queue="steps.fifo"}'] == 2
            assert told['ropewalk_queue_dlq_missing{queue="steps.fifo"}'] == 0
            cluster.delete_queues(["dead.fifo"])
            assert figures(cluster)['ropewalk_queue_dlq_missing{queue="steps.fifo"}'] == 1
