"""Bytes derived by hand from the protocol's rules, first of all for the versions that kio does not know."""

import pytest

from ropewalk.wire.api import AnyApi
from ropewalk.wire.messages.api_versions import API as API_VERSIONS
from ropewalk.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from ropewalk.wire.messages.delete_groups import API as DELETE_GROUPS
from ropewalk.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from ropewalk.wire.messages.describe_topic_partitions import API as DESCRIBE_TOPIC_PARTITIONS
from ropewalk.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from ropewalk.wire.messages.produce import API as PRODUCE
from ropewalk.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ropewalk.wire.messages.txn_offset_commit import API as TXN_OFFSET_COMMIT
from ropewalk.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from ropewalk.wire.types import Message


@pytest.mark.parametrize(
    ("api", "version", "message", "pieces"),
    [
        pytest.param(
            API_VERSIONS,
            5,
            ApiVersionsRequest("kcat", "1.7", "cluster", 3),
            ["05", b"kcat", "04", b"1.7", "08", b"cluster", "00000003", "00"],
            id="ApiVersions v5 names the cluster and the node it means",
        ),
        pytest.param(
            API_VERSIONS,
            5,
            ApiVersionsRequest("a", "b"),
            ["02", b"a", "02", b"b", "00", "ffffffff", "00"],
            id="ApiVersions v5 without either",
        ),
        pytest.param(
            API_VERSIONS,
            5,
            ApiVersionsResponse(0, (ApiVersion(18, 0, 5),), 7),
            ["0000", "02", "0012 0000 0005", "00", "00000007", "00"],
            id="ApiVersions v5 without features",
        ),
        pytest.param(
            API_VERSIONS,
            5,
            ApiVersionsResponse(
                0,
                (),
                supported_features=(SupportedFeatureKey("f", 0, 2),),
                finalized_features_epoch=9,
                finalized_features=(FinalizedFeatureKey("f", 2, 1),),
                zk_migration_ready=True,
            ),
            [
                "0000 01 00000000",
                "04",  # four tags, each with its size
                "00 08", "02", "02", b"f", "0000 0002", "00",
                "01 08", "0000000000000009",
                "02 08", "02", "02", b"f", "0002 0001", "00",
                "03 01", "01",
            ],
            id="ApiVersions v5 with every tag",
        ),
        pytest.param(DELETE_GROUPS, 3, DeleteGroupsRequest(("g",)), ["02", "02", b"g", "00"], id="DeleteGroups v3"),
        pytest.param(
            DELETE_GROUPS,
            3,
            DeleteGroupsResponse(0, (DeletableGroupResult("g", 68, "busy"), DeletableGroupResult("h", 0))),
            ["00000000", "03", "02", b"g", "0044", "05", b"busy", "00", "02", b"h", "0000", "00", "00", "00"],
            id="DeleteGroups v3 says why",
        ),
        pytest.param(
            PRODUCE,
            8,
            ProduceRequest(None, -1, 1000, (TopicProduceData("t", partitions=(PartitionProduceData(2, b"rr"),)),)),
            ["ffff", "ffff", "000003e8", "00000001", "0001", b"t", "00000001", "00000002", "00000002", b"rr"],
            id="Produce v8, the last that is not flexible",
        ),
        pytest.param(
            PRODUCE,
            13,
            ProduceRequest("x", 1, 0, (TopicProduceData("", bytes(range(16)), (PartitionProduceData(2, None),)),)),
            ["02", b"x", "0001", "00000000", "02", bytes(range(16)), "02", "00000002", "00", "00", "00", "00"],
            id="Produce v13, topics by id",
        ),
        pytest.param(
            TXN_OFFSET_COMMIT,
            6,
            TxnOffsetCommitRequest(
                "x", "g", 7, 2, 5, "m", None,
                (TxnOffsetCommitRequestTopic("", bytes(range(16)), (TxnOffsetCommitRequestPartition(3, 9, 1, "n"),)),),
            ),
            [
                "02", b"x", "02", b"g", "0000000000000007", "0002", "00000005", "02", b"m", "00",
                "02", bytes(range(16)), "02", "00000003", "0000000000000009", "00000001", "02", b"n", "00", "00", "00",
            ],
            id="TxnOffsetCommit v6, topics by id",
        ),
        pytest.param(
            TXN_OFFSET_COMMIT,
            6,
            TxnOffsetCommitResponse(
                0, (TxnOffsetCommitResponseTopic("", bytes(16), (TxnOffsetCommitResponsePartition(3, 100),)),)
            ),
            ["00000000", "02", bytes(16), "02", "00000003", "0064", "00", "00", "00"],
            id="TxnOffsetCommit v6 answers by id",
        ),
        pytest.param(
            DESCRIBE_TOPIC_PARTITIONS,
            0,
            DescribeTopicPartitionsRequest((TopicRequest("t"),), 10, Cursor("t", 4)),
            ["02", "02", b"t", "00", "0000000a", "01", "02", b"t", "00000004", "00", "00"],
            id="a structure that could be null and is not",
        ),
        pytest.param(
            DESCRIBE_TOPIC_PARTITIONS,
            0,
            DescribeTopicPartitionsRequest(()),
            ["01", "000007d0", "ff", "00"],
            id="a structure that is null",
        ),
    ],
)  # fmt: skip
def test_bytes(api: AnyApi, version: int, message: Message, pieces: list[str | bytes]) -> None:
    expected = b"".join(bytes.fromhex(piece) if isinstance(piece, str) else piece for piece in pieces)
    if isinstance(message, api.request):
        assert b"".join(api.encode_request(version, message)) == expected
        assert api.decode_request(version, memoryview(expected), 0, len(expected)) == message
    else:
        assert b"".join(api.encode_response(version, message)) == expected
        assert api.decode_response(version, memoryview(expected), 0, len(expected)) == message
