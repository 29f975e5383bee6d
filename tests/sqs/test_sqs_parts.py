"""The parts of the SQS door by themselves: checksums, ids, handles, records and back, keys."""

import json
import os
from base64 import b64decode
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ropewalk.base import errors
from ropewalk.base.errors import InvalidSetting, RopewalkError
from ropewalk.base.ids import Offset, OwnerId, TopicId
from ropewalk.queues import errors as queue_errors
from ropewalk.queues.messages import Receipt
from ropewalk.records.record import Record
from ropewalk.sqs import checksums
from ropewalk.sqs.authentication import Key
from ropewalk.sqs.credentials import parse_keys, read_keys
from ropewalk.sqs.errors import FAULTS, INTERNAL_FAILURE, SqsRefusal, fault_of
from ropewalk.sqs.message_ids import message_id, place_of
from ropewalk.sqs.messages import FORBIDDEN, AttributeValue, check_attributes, is_text
from ropewalk.sqs.packing import (
    BASE64,
    ENCODING,
    attributes_of,
    content_of_record,
    group_of,
    pack,
    said_by,
)
from ropewalk.sqs.receipts import Receipts
from ropewalk.sqs.urls import name_in_arn

TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff"), min_size=1)
NAMES = st.from_regex(r"[A-Za-z0-9_-]{1,12}(\.[A-Za-z0-9_-]{1,12}){0,3}", fullmatch=True).filter(
    lambda name: not name.lower().startswith(("aws.", "amazon."))
)
VALUES = st.one_of(
    st.builds(AttributeValue, string_value=TEXTS, data_type=st.sampled_from(["String", "String.label"])),
    st.builds(
        AttributeValue,
        string_value=st.integers().map(str),
        data_type=st.sampled_from(["Number", "Number.float"]),
    ),
    st.builds(
        AttributeValue,
        binary_value=st.binary(min_size=1),
        data_type=st.sampled_from(["Binary", "Binary.png"]),
    ),
)
QUEUE = OwnerId(b"a queue's own id")
TOPIC = TopicId(b"a topic's own id")


@pytest.mark.parametrize(
    ("attributes", "digest"),
    [
        # As SDKs' own tests have them.
        pytest.param(
            [("timestamp", "Number", "1493147359900")], "235c5c510d26fb653d073faed50ae77c", id="Number"
        ),
        pytest.param([("AWSTraceHeader", "String", "Root=1")], None, id="String"),
        pytest.param([("a", "Binary", b"\x00\xff")], None, id="Binary"),
    ],
)
def test_attributes_are_summed_as_sdks_do(
    attributes: list[tuple[str, str, str | bytes]], digest: str | None
) -> None:
    found = checksums.of_attributes(attributes)
    assert len(found) == 32
    assert digest is None or found == digest


@given(st.dictionaries(NAMES, VALUES, max_size=10), TEXTS, st.integers(0, 900_000))
@settings(max_examples=200, deadline=None)
def test_a_message_comes_back_from_its_record_as_it_was(
    attributes: dict[str, AttributeValue], body: str, delay_ms: int
) -> None:
    check_attributes(attributes)
    outgoing = pack(
        body.encode(),
        attributes=attributes,
        trace="Root=1",
        sender="AKID",
        group="group",
        deduplication_id="dedup",
        delay_ms=delay_ms,
        is_fifo=True,
        now_ms=7,
    )
    record = Record(Offset(0), 7, outgoing.group.encode(), outgoing.body, outgoing.headers)
    content, said = content_of_record(record), said_by(record.headers)
    assert (content.body, attributes_of(content, said)) == (body, attributes)
    assert (group_of(record), said.deduplication_id, said.sender, said.trace) == (
        "group",
        "dedup",
        "AKID",
        "Root=1",
    )


@given(
    st.binary(max_size=64),
    st.one_of(st.none(), st.binary(max_size=8)),
    st.lists(st.tuples(st.text(max_size=12), st.one_of(st.none(), st.binary(max_size=12))), max_size=6),
)
@settings(max_examples=300, deadline=None)
def test_whatever_a_kafka_producer_wrote_can_be_received(
    value: bytes, key: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    found, said = content_of_record(Record(Offset(0), 0, key, value)), said_by(tuple(headers))
    attributes = attributes_of(found, said)
    if ENCODING in attributes and attributes[ENCODING] == BASE64:
        assert b64decode(found.body) == value or found.value == value
    else:
        assert found.body.encode() == value
    json.dumps(found.body)
    group_of(Record(key=key)).encode()
    for name, content in headers:
        if name.isalnum() and name.isascii() and name in attributes:
            attribute = attributes[name]
            assert attribute.data_type in ("String", "Binary")
            assert content is None or attribute.binary_value is not None or attribute.string_value is not None


@pytest.mark.parametrize("name", ["rw.delay.ms", "sqs.sender", "sqs.type.a", "rw.dedup.id", "sqs.as.rw.x"])
def test_an_attribute_cannot_pass_for_a_header_of_leaders_or_doors(name: str) -> None:
    attributes = {name: AttributeValue(string_value="9", data_type="String")}
    outgoing = pack(
        b"b",
        attributes=attributes,
        trace=None,
        sender="",
        group="",
        deduplication_id="",
        delay_ms=0,
        is_fifo=False,
        now_ms=0,
    )
    assert name not in dict(outgoing.headers)
    assert said_by(outgoing.headers).attributes == attributes


@given(st.text(st.characters(codec=None)))
@example("\x00")
@example("a\tb\r\n")
@example("\x7f\x85")
@example("\ufffe")
@example("\uffff")
@example("\U0001fffe")
@example("\ud800")
def test_what_a_message_may_say_is_what_the_standard_of_xml_says(text: str) -> None:
    assert is_text(text) == (FORBIDDEN.search(text) is None)


@given(st.integers(0, 2**31), st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1))
def test_a_handle_says_what_it_was_made_of(partition: int, offset: int, attempt: int) -> None:
    receipt = Receipt(partition, offset, attempt)
    receipts = Receipts("cluster")
    handle = receipts.handle(QUEUE, receipt)
    assert receipts.read(QUEUE, handle) == receipt
    for others, queue in ((receipts, OwnerId(bytes(16))), (Receipts("another"), QUEUE)):
        with pytest.raises(SqsRefusal):
            others.read(queue, handle)


@given(st.integers(0, 43), st.sampled_from("AQgw_-09"))
def test_a_handle_with_one_character_changed_is_refused(position: int, character: str) -> None:
    receipts = Receipts("cluster")
    handle = receipts.handle(QUEUE, Receipt(1, 2, 3))
    forged = handle[:position] + character + handle[position + 1 :]
    if forged != handle:
        with pytest.raises(SqsRefusal):
            receipts.read(QUEUE, forged)


@pytest.mark.parametrize(("offset", "attempt"), [(2**63, 1), (1, 2**63)])
def test_a_handle_that_somebody_made_up_of_what_no_log_has_is_refused(offset: int, attempt: int) -> None:
    receipts = Receipts("cluster")
    with pytest.raises(SqsRefusal):
        receipts.read(QUEUE, receipts.handle(QUEUE, Receipt(1, offset, attempt)))


@given(st.text(max_size=60))
def test_a_text_is_no_handle(text: str) -> None:
    with pytest.raises(SqsRefusal):
        Receipts("cluster").read(QUEUE, text)


@given(st.integers(0, 65_535), st.integers(0, 2**63 - 1))
def test_a_message_id_is_a_uuid_and_can_be_read_back(partition: int, offset: int) -> None:
    text = message_id(TOPIC, partition, offset)
    assert [len(part) for part in text.split("-")] == [8, 4, 4, 4, 12]
    place = place_of(text, TOPIC)
    assert place is not None
    assert (place.partition, place.offset) == (partition, offset)
    assert place_of(text, TopicId(bytes(16))) is None


@given(st.text(max_size=40))
def test_a_text_is_no_message_id(text: str) -> None:
    assert place_of(text, TOPIC) is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("arn:aws:sqs:us-east-1:000000000000:jobs", "jobs"),
        ("arn:aws-cn:sqs:anywhere:1:jobs.fifo", "jobs.fifo"),
        ("arn:aws:sns:us-east-1:000000000000:jobs", None),
        ("arn:aws:sqs:us-east-1:000000000000:", None),
        ("arn:aws:sqs:us-east-1:jobs", None),
        ("jobs", None),
        ("", None),
    ],
)
def test_a_queue_is_found_in_its_arn(text: str, name: str | None) -> None:
    assert name_in_arn(text) == name


def test_every_refusal_of_queues_has_its_words() -> None:
    unspoken = {queue_errors.QueueError, queue_errors.UnknownMove, queue_errors.UnknownTask}
    refusals = {
        each
        for each in vars(queue_errors).values()
        if isinstance(each, type) and issubclass(each, RopewalkError) and each is not RopewalkError
    }
    assert refusals - unspoken <= FAULTS.keys()
    assert fault_of(errors.StorageFailed("x")) is INTERNAL_FAILURE


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ('[AKID]\nsecret = "s"\n', {"AKID": Key("s")}),
        ('[AKID]\nsecret = "s"\nadmin = true\n', {"AKID": Key("s", is_admin=True)}),
        ('AKID = "s"\n"with/slash" = "t"\n', {"AKID": Key("s"), "with/slash": Key("t")}),
    ],
)
def test_keys_are_read(tmp_path: Path, text: str, keys: dict[str, Key]) -> None:
    path = tmp_path / "keys.toml"
    path.write_text(text)
    path.chmod(0o600)
    assert read_keys(str(path)) == keys


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "names no access key"),
        ("nonsense", "is no TOML"),
        ("[AKID]\n", "AKID"),
        ('[AKID]\nsecret = ""\n', "has no secret"),
        ("[AKID]\nsecret = 5\n", "AKID"),
        ('[AKID]\nsecret = "hidden"\nadmn = true\n', "admn"),
        ("AKID = 5\n", "AKID"),
        (
            '[AKRW]\nderived_from = "1f2e3d4c"\n',
            "is derived from '1f2e3d4c', which sqs.credential.key.file does not have",
        ),
        ('[AKRW]\nderived_from = "1f2e3d4c"\nsecret = "hidden"\n', "has a secret besides"),
    ],
)
def test_a_file_of_keys_that_is_wrong_is_refused_without_its_secrets(text: str, words: str) -> None:
    with pytest.raises(InvalidSetting, match=words) as caught:
        parse_keys(text.encode(), "keys.toml")
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o660, 0o604])
def test_a_file_of_keys_that_others_may_use_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "keys.toml"
    path.write_text('AKID = "s"\n')
    os.chmod(path, mode)
    with pytest.raises(InvalidSetting, match="chmod 600"):
        read_keys(str(path))


def test_a_file_of_keys_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="cannot be read"):
        read_keys(str(tmp_path / "none.toml"))
