"""Every command that talks to a broker, through its public face: arguments in, output and exit code out."""

import json
import signal
from pathlib import Path

import pytest

from ropewalk.client.calls.partitioner import partition_for_key
from ropewalk.records.batch import decode_header
from ropewalk.records.codec import Codec
from ropewalk.records.record import Record, build, decode_records
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import fetch, metadata, produce
from tests.cli.conftest import Ropewalk, in_terminal, start_process
from tests.client.fake_broker import Fault
from tests.client.loopback import LoopbackBroker


def lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def fill(broker: LoopbackBroker, topic: str, *values: bytes, partition: int = 0) -> None:
    """One batch per value, timestamped 1000, 2000, …"""
    for number, value in enumerate(values, start=1):
        batch = build([Record(timestamp=number * 1000, key=b"k", value=value)])
        broker.cluster.topics[topic].partitions[partition].append(bytes(batch))


def test_topics_are_listed_as_a_table_and_as_json(broker: LoopbackBroker, ropewalk: Ropewalk) -> None:
    broker.cluster.add_topic("orders", 0, 0)
    broker.cluster.add_topic("__internal", 0)
    result = ropewalk("topic", "ls")
    assert result.exit_code == 0
    assert lines(result.stdout) == [["TOPIC", "PARTITIONS", "REPLICAS"], ["orders", "2", "1"]]
    shown = json.loads(ropewalk("topic", "ls", "-o", "json").stdout)
    assert [(topic["topic"], topic["partitions"]) for topic in shown] == [("orders", 2)]
    assert "__internal" in ropewalk("topic", "ls", "--internal").stdout


@pytest.mark.parametrize("arguments", [("-o", "json", "topic", "ls"), ("topic", "ls", "-o", "json")])
def test_global_options_stand_before_or_after_the_command(
    arguments: tuple[str, ...], broker: LoopbackBroker, ropewalk: Ropewalk
) -> None:
    assert json.loads(ropewalk(*arguments).stdout) == []


def test_the_nearer_bootstrap_wins(broker: LoopbackBroker, ropewalk: Ropewalk) -> None:
    assert ropewalk("-b", "127.0.0.1:1", "topic", "ls", "-b", broker.address).exit_code == 0
    assert ropewalk("-b", "127.0.0.1:1", "topic", "ls").exit_code == 1


def test_a_topic_lives_from_create_to_delete(broker: LoopbackBroker, ropewalk: Ropewalk) -> None:
    created = ropewalk("topic", "create", "orders", "-p", "3", "-c", "retention.ms=5")
    assert (created.exit_code, lines(created.stdout)[1]) == (0, ["orders", "created"])
    described = ropewalk("topic", "describe", "orders")
    assert described.exit_code == 0
    assert ["retention.ms", "5", "topic"] in lines(described.stdout)
    assert ["2", "0", "0", "0", "0", "0", "0"] in lines(described.stdout)
    assert "max.message.bytes" not in described.stdout
    assert "max.message.bytes" in ropewalk("topic", "describe", "orders", "--all").stdout
    assert ropewalk("topic", "alter", "orders", "-s", "flush=os", "-d", "retention.ms").exit_code == 0
    assert broker.cluster.topics["orders"].configs == {"flush": "os"}
    assert ropewalk("topic", "add-partitions", "orders", "-n", "2").exit_code == 0
    assert len(broker.cluster.topics["orders"].partitions) == 5
    assert ropewalk("topic", "delete", "orders", "--yes").exit_code == 0
    assert broker.cluster.topics == {}


def test_a_dry_run_changes_nothing(broker: LoopbackBroker, ropewalk: Ropewalk) -> None:
    broker.cluster.add_topic("orders", 0)
    fill(broker, "orders", b"a", b"b")
    for arguments in (
        ("create", "new"),
        ("alter", "orders", "-s", "flush=os"),
        ("add-partitions", "orders", "-n", "2"),
        ("trim", "orders", "--before", "end"),
    ):
        result = ropewalk("topic", *arguments, "--dry-run")
        assert result.exit_code == 0, result.output
        assert "would" in result.stdout.lower()
    topic = broker.cluster.topics["orders"]
    assert list(broker.cluster.topics) == ["orders"]
    assert (len(topic.partitions), topic.configs, topic.partitions[0].log_start_offset) == (1, {}, 0)


@pytest.mark.parametrize(
    ("before", "expected"),
    [("1", 1), ("end", 3), ("-1", 2), ("s@2000", 1), ("beginning", 0)],
)
def test_a_topic_is_trimmed(before: str, expected: int, broker: LoopbackBroker, ropewalk: Ropewalk) -> None:
    broker.cluster.add_topic("orders", 0)
    fill(broker, "orders", b"a", b"b", b"c")
    result = ropewalk("topic", "trim", "orders", "--before", before, "--yes", "-o", "json")
    assert json.loads(result.stdout) == [{"partition": 0, "former_start": 0, "start": expected}]
    assert broker.cluster.topics["orders"].partitions[0].log_start_offset == expected


def test_one_of_several_topics_that_fails_is_shown_among_the_others(
    broker: LoopbackBroker, ropewalk: Ropewalk
) -> None:
    broker.cluster.add_topic("old", 0)
    result = ropewalk("topic", "create", "new", "old")
    assert result.exit_code == 1
    assert "new" in broker.cluster.topics
    assert "topic old exists (TOPIC_ALREADY_EXISTS)" in result.stdout
    assert ropewalk("topic", "create", "old", "--if-not-exists").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ("topic", "describe", "missing"),
            "missing: unknown topic or partition (UNKNOWN_TOPIC_OR_PARTITION); `ropewalk topic ls`",
        ),
        (("topic", "create", "old"), "(TOPIC_ALREADY_EXISTS); --if-not-exists makes that no failure"),
        (("topic", "alter", "missing", "-s", "a=b"), "(UNKNOWN_TOPIC_OR_PARTITION); `ropewalk topic ls`"),
        (("consume", "missing"), "missing: unknown topic or partition"),
        (("consume", "old", "-o", "9"), "old-0 has offsets 0 to 0, not 9; choose one of these"),
        (("consume", "old", "-p", "4"), "old-4: the topic has 1 partitions"),
        (("topic", "ls", "-X", "no.such=1"), "no.such is not a client setting; there are"),
    ],
)
def test_a_failure_is_one_line_with_a_next_step(
    arguments: tuple[str, ...], expected: str, broker: LoopbackBroker, ropewalk: Ropewalk
) -> None:
    broker.cluster.add_topic("old", 0)
    result = ropewalk(*arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("ropewalk: ")
    assert expected in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("topic", "describe", "missing"), "UNKNOWN_TOPIC_OR_PARTITION"),
        (("group", "describe", "missing"), "GROUP_ID_NOT_FOUND"),
        (("consume", "missing"), "UNKNOWN_TOPIC_OR_PARTITION"),
        (("consume", "old", "-o", "9"), "Failed"),
        (("topic", "ls", "-X", "no.such=1"), "InvalidSetting"),
        (("topic", "ls", "-b", "127.0.0.1:1"), "Unreachable"),
        (("config", "describe", "nonsense"), "Failed"),
        (("up", "--nodes", "65"), "ImpossiblePlan"),
        (("serve", "--set", "no.such=1"), "InvalidSetting"),
    ],
)
@pytest.mark.parametrize("is_global", [True, False])
def test_a_failure_is_an_object_on_stderr_where_json_was_asked_for(
    arguments: tuple[str, ...], error: str, is_global: bool, broker: LoopbackBroker, ropewalk: Ropewalk
) -> None:
    broker.cluster.add_topic("old", 0)
    result = ropewalk("-o", "json", *arguments) if is_global else ropewalk(*arguments, "-o", "json")
    assert (result.exit_code, result.stdout) == (1, "")
    told = json.loads(result.stderr)
    assert told["error"] == error
    assert set(told) == {"error", "message", "next"}


def test_nobody_there_names_the_next_step(ropewalk: Ropewalk) -> None:
    result = ropewalk("topic", "ls", "-b", "127.0.0.1:1")
    assert result.exit_code == 1
    assert result.stderr == (
        "ropewalk: cannot reach 127.0.0.1:1: connection refused; "
        "start a node with `ropewalk up` or pass --bootstrap\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("frobnicate",),
        ("topic", "ls", "--frobnicate"),
        ("topic", "create"),
        ("topic", "ls", "-b", "host:port"),
        ("topic", "ls", "-o", "xml"),
        ("topic", "ls", "-X", "nonsense"),
        ("topic", "alter", "orders"),
        ("topic", "add-partitions", "orders", "-n", "0"),
        ("topic", "trim", "orders", "--before", "soon"),
        ("consume", "orders", "-o", "soon"),
        ("consume", "orders", "-o", "1", "-o", "2"),
        ("consume", "orders", "-f", "%q"),
        ("consume", "orders", "-f", "%v", "--json"),
        ("consume", "orders", "-n", "0"),
        ("consume", "orders", "-p", "x"),
        ("produce", "orders", "-z", "brotli"),
        ("produce", "orders", "--acks", "2"),
        ("produce", "orders", "-H", "nonsense"),
        ("produce", "orders", "-k", "a", "-K", "b"),
        ("produce", "orders", "-D", ""),
    ],
)
def test_a_wrong_call_exits_with_2(arguments: tuple[str, ...], ropewalk: Ropewalk) -> None:
    result = ropewalk(*arguments)
    assert result.exit_code == 2
    assert "Usage:" in result.stderr


def test_lines_become_records(broker: LoopbackBroker, ropewalk: Ropewalk) -> None:
    result = ropewalk("produce", "orders", stdin="one\ntwo\n\nthree")
    assert (result.exit_code, result.stdout) == (0, "")
    assert broker.cluster.topics["orders"].partitions[0].values() == [b"one", b"two", b"", b"three"]


def test_keys_headers_and_nulls_are_sent(broker: LoopbackBroker, ropewalk: Ropewalk) -> None:
    broker.cluster.add_topic("orders", 0, 0, 0)
    result = ropewalk(
        "produce", "orders", "-K", ":", "-Z", "-H", "a=1", "-H", "a=2", stdin="alice:hi\nbob:\n"
    )
    assert result.exit_code == 0
    for key, value in ((b"alice", b"hi"), (b"bob", None)):
        partition = broker.cluster.topics["orders"].partitions[partition_for_key(key, 3)]
        records = [record for batch in partition.batches for record in decode_records(batch)]
        assert (key, value, (("a", b"1"), ("a", b"2"))) in [
            (record.key, record.value, record.headers) for record in records
        ]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_batches_are_compressed_as_asked(codec: str, broker: LoopbackBroker, ropewalk: Ropewalk) -> None:
    assert ropewalk("produce", "orders", "-z", codec, stdin="hello\n").exit_code == 0
    partition = broker.cluster.topics["orders"].partitions[0]
    assert decode_header(partition.batches[0]).codec == Codec[codec.upper()]
    assert partition.values() == [b"hello"]


def test_producing_says_in_json_where_records_went(broker: LoopbackBroker, ropewalk: Ropewalk) -> None:
    broker.cluster.add_topic("orders", 0, 0)
    fill(broker, "orders", b"before", partition=1)
    result = ropewalk("produce", "orders", "-p", "1", "-o", "json", stdin="a\nb\n")
    assert json.loads(result.stdout) == {
        "topic": "orders",
        "records": 2,
        "partitions": [{"partition": 1, "base_offset": 1, "record_count": 2}],
    }


def test_a_refused_record_fails_the_command(broker: LoopbackBroker, ropewalk: Ropewalk) -> None:
    broker.broker.fail(produce.API, Fault(1, ErrorCode.MESSAGE_TOO_LARGE))
    result = ropewalk("produce", "orders", stdin="x\n")
    assert result.exit_code == 1
    assert "orders-0: message too large (MESSAGE_TOO_LARGE); raise max.message.bytes" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param((), ["a", "b", "c"], id="from the beginning by default"),
        pytest.param(("-o", "beginning"), ["a", "b", "c"], id="beginning"),
        pytest.param(("-o", "1"), ["b", "c"], id="an offset"),
        pytest.param(("-o", "-1"), ["c"], id="before the end"),
        pytest.param(("-o", "-9"), ["a", "b", "c"], id="further back than there is"),
        pytest.param(("-o", "s@2000"), ["b", "c"], id="from a time"),
        pytest.param(("-o", "s@9999"), [], id="from a time to come"),
        pytest.param(("-o", "e@3000"), ["a", "b"], id="up to a time"),
        pytest.param(("-o", "s@2000", "-o", "e@3000"), ["b"], id="between two times"),
        pytest.param(("-o", "end"), [], id="end"),
        pytest.param(("-n", "2"), ["a", "b"], id="a number of records"),
    ],
)
def test_the_asked_for_records_are_printed(
    arguments: tuple[str, ...], expected: list[str], broker: LoopbackBroker, ropewalk: Ropewalk
) -> None:
    broker.cluster.add_topic("orders", 0)
    fill(broker, "orders", b"a", b"b", b"c")
    result = ropewalk("consume", "orders", "-e", *arguments)
    assert result.exit_code == 0, result.output
    assert result.stdout.split() == expected


def test_all_partitions_are_consumed_or_those_asked_for(broker: LoopbackBroker, ropewalk: Ropewalk) -> None:
    broker.cluster.add_topic("orders", 0, 0, 0)
    for partition in range(3):
        fill(broker, "orders", b"v%d" % partition, partition=partition)
    assert sorted(ropewalk("consume", "orders", "-e").stdout.split()) == ["v0", "v1", "v2"]
    assert ropewalk("consume", "orders", "-e", "-p", "2,0", "-f", "%p ").stdout.split() == ["0", "2"]


@pytest.mark.parametrize(
    "arguments", [("--json",), ("-J",), ("-o", "json"), ("-o", "json", "-o", "beginning")]
)
def test_json_is_one_object_per_line(
    arguments: tuple[str, ...], broker: LoopbackBroker, ropewalk: Ropewalk
) -> None:
    broker.cluster.add_topic("orders", 0)
    fill(broker, "orders", b"a", b"b")
    shown = [json.loads(line) for line in ropewalk("consume", "orders", "-e", *arguments).stdout.splitlines()]
    assert [(record["offset"], record["value"]) for record in shown] == [(0, "a"), (1, "b")]


def test_a_refusal_that_may_last_is_told_at_once_and_tried_again(
    broker: LoopbackBroker, ropewalk: Ropewalk
) -> None:
    broker.cluster.add_topic("greetings", 0)
    broker.broker.fail(produce.API, Fault(3, ErrorCode.KAFKA_STORAGE_ERROR))
    result = ropewalk("produce", "greetings", stdin="hello\n")
    assert result.exit_code == 0
    assert result.stderr.count("refused, and tried again: greetings-0") == 1
    assert "topic trim" in result.stderr


def test_what_was_produced_is_consumed_unchanged(broker: LoopbackBroker, ropewalk: Ropewalk) -> None:
    payload = bytes(range(256)).replace(b"\n", b"")
    assert ropewalk("produce", "orders", stdin=payload).exit_code == 0
    assert ropewalk("consume", "orders", "-e", "-f", "%v").stdout_bytes == payload


def test_consuming_waits_for_more_and_ends_with_130_on_control_c(broker: LoopbackBroker) -> None:
    broker.cluster.add_topic("orders", 0)
    fill(broker, "orders", b"first")
    process = start_process("consume", "orders", bootstrap=broker.address)
    assert process.stdout is not None
    assert process.stdout.readline() == b"first\n"
    fill(broker, "orders", b"second")
    assert process.stdout.readline() == b"second\n"
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=30)
    assert (process.returncode, stdout, stderr) == (130, b"", b"")


def test_a_reader_that_goes_away_is_no_failure(broker: LoopbackBroker) -> None:
    broker.cluster.add_topic("orders", 0)
    fill(broker, "orders", *[b"x" * 9_000] * 50)
    process = start_process("consume", "orders", "-e", bootstrap=broker.address)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait(timeout=30) == 0


def test_lines_from_a_pipe_are_sent_as_they_come(broker: LoopbackBroker) -> None:
    broker.cluster.add_topic("orders", 0)
    consumer = start_process("consume", "orders", "-n", "2", bootstrap=broker.address)
    producer = start_process("produce", "orders", bootstrap=broker.address)
    assert producer.stdin is not None
    assert consumer.stdout is not None
    producer.stdin.write(b"first\n")
    producer.stdin.flush()
    assert consumer.stdout.readline() == b"first\n"
    producer.stdin.write(b"second")
    producer.stdin.close()
    assert consumer.stdout.readline() == b"second\n"
    assert producer.wait(timeout=30) == 0
    assert consumer.wait(timeout=30) == 0


def test_a_broker_that_hangs_up_while_consuming_is_asked_again(
    broker: LoopbackBroker, ropewalk: Ropewalk
) -> None:
    broker.cluster.add_topic("orders", 0)
    fill(broker, "orders", b"a")
    broker.broker.fail(fetch.API, Fault(2, hang_up=True))
    assert ropewalk("consume", "orders", "-e").stdout == "a\n"


def test_the_doctor_finds_a_healthy_cluster(
    broker: LoopbackBroker, ropewalk: Ropewalk, tmp_path: Path
) -> None:
    result = ropewalk("doctor", "--data", str(tmp_path / "data"), "-o", "json")
    findings = {finding["check"]: finding for finding in json.loads(result.stdout)}
    assert result.exit_code == 0
    assert {"versions", "file descriptors", "clock", "settings", "data directory", "free disk"} <= set(
        findings
    )
    assert {"file system", "bootstrap", "cluster", "broker 0"} <= set(findings)
    assert f"Metadata v{metadata.API.version_max}" in findings["bootstrap"]["detail"]


def test_the_doctor_names_what_is_wrong_and_what_surprises(ropewalk: Ropewalk, tmp_path: Path) -> None:
    result = ropewalk(
        "doctor", "-b", "127.0.0.1:1", "--data", str(tmp_path), "--set", "flush=os", "-o", "json"
    )
    assert result.exit_code == 1
    findings = json.loads(result.stdout)
    wrong = [finding for finding in findings if finding["verdict"] == "wrong"]
    assert [finding["check"] for finding in wrong] == ["bootstrap"]
    assert "start a node with `ropewalk up`" in wrong[0]["detail"]
    assert any("a power cut may lose" in finding["detail"] for finding in findings)


def test_the_doctor_reports_a_setting_that_does_not_exist(ropewalk: Ropewalk) -> None:
    result = ropewalk("doctor", "--offline", "--set", "no.such=1")
    assert result.exit_code == 1
    assert "there is no setting 'no.such'" in result.stdout


ORDERS = (b'{"id": 5, "city": "Bergen"}', b'{"id": 6, "city": "Oslo"}', b"error 42", b'{"id": "5"}')


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (("--grep", "Bergen"), [0]),
        (("--grep", "id", "--grep", "Oslo"), [1]),
        (("--regex", "(?i)ERROR [0-9]+"), [2]),
        (("--path", "id=5"), [0]),
        (("--path", 'id="5"'), [3]),
        (("--path", "id>=5", "--grep", "Oslo"), [1]),
        (("--path", "id", "-n", "2"), [0, 1]),
        (("--grep", "nowhere"), []),
    ],
)
def test_records_are_chosen_by_what_is_in_them(
    broker: LoopbackBroker, ropewalk: Ropewalk, arguments: tuple[str, ...], wanted: list[int]
) -> None:
    broker.cluster.add_topic("orders", 0)
    fill(broker, "orders", *ORDERS)
    shown = ropewalk("consume", "orders", "-e", *arguments).stdout_bytes
    assert shown == b"".join(ORDERS[number] + b"\n" for number in wanted)


def test_values_are_decoded_and_what_cannot_be_is_left(broker: LoopbackBroker, ropewalk: Ropewalk) -> None:
    broker.cluster.add_topic("orders", 0)
    fill(broker, "orders", b"\x81\xa1a\x05", b"\xc1")
    arguments = ("consume", "orders", "-e", "--decode", "msgpack")
    assert ropewalk(*arguments).stdout_bytes == b'{"a":5}\n\xc1\n'
    assert ropewalk(*arguments, "--path", "a=5").stdout_bytes == b'{"a":5}\n'
    told = [json.loads(line) for line in ropewalk(*arguments, "-J").stdout.splitlines()]
    assert [each.get("value") for each in told] == ['{"a":5}', None]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("--regex", "("), 2), (("--path", "=5"), 2), (("--decode", "xml"), 1)],
)
def test_what_cannot_be_searched_for_is_refused(
    ropewalk: Ropewalk, arguments: tuple[str, ...], code: int
) -> None:
    result = ropewalk("consume", "orders", "-b", "127.0.0.1:1", *arguments)
    assert result.exit_code == code
    assert arguments[0] in result.stderr or "xml" in result.stderr


def test_json_is_indented_on_a_terminal_and_nowhere_else(broker: LoopbackBroker, ropewalk: Ropewalk) -> None:
    broker.cluster.add_topic("orders", 0)
    fill(broker, "orders", ORDERS[0])
    shown, code = in_terminal("consume", "orders", "-e", bootstrap=broker.address)
    assert code == 0
    assert '{\r\n  "id": 5,\r\n  "city": "Bergen"\r\n}' in shown
    as_it_is, _ = in_terminal("consume", "orders", "-e", "-f", "%v\\n", bootstrap=broker.address)
    assert ORDERS[0].decode() in as_it_is
    assert ropewalk("consume", "orders", "-e").stdout_bytes == ORDERS[0] + b"\n"
