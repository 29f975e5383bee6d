"""Headers: which version of an API has which, and what malformed ones give."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.errors import ProtocolError
from ropewalk.wire.api import AnyApi
from ropewalk.wire.headers import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
    peek_correlation_id,
)
from ropewalk.wire.messages import api_versions, offset_delete, produce
from tests.wire.invented import DIRECTIONS, examples

FLEXIBLE_SINCE = {direction.api.key: direction.api.flexible_since for direction in DIRECTIONS}


@pytest.mark.parametrize(
    ("encoded", "expected", "consumed"),
    [
        pytest.param("0000 0008 00000007 ffff", RequestHeader(0, 8, 7, None), 10, id="no client id"),
        pytest.param("0000 0008 00000007 0000", RequestHeader(0, 8, 7, ""), 10, id="empty client id"),
        pytest.param("0000 0009 00000007 0001 63 00", RequestHeader(0, 9, 7, "c"), 12, id="flexible"),
        pytest.param(
            "0000 0009 00000007 ffff 01 09 02 abcd", RequestHeader(0, 9, 7, None), 15, id="unknown tag"
        ),
        pytest.param(
            "0012 0003 00000007 ffff 00", RequestHeader(18, 3, 7, None), 11, id="ApiVersions is no exception"
        ),
        pytest.param(
            "0012 7fff 00000007 ffff 00", RequestHeader(18, 0x7FFF, 7, None), 11, id="version from the future"
        ),
        pytest.param("002f 0000 00000007 ffff", RequestHeader(47, 0, 7, None), 10, id="never flexible"),
        pytest.param("7777 0009 ffffffff 0001 63", RequestHeader(0x7777, 9, -1, "c"), 11, id="unknown key"),
    ],
)
def test_request_headers(encoded: str, expected: RequestHeader, consumed: int) -> None:
    frame = memoryview(b"!!" + bytes.fromhex(encoded) + b"body")
    assert decode_request_header(frame, 2, len(frame), FLEXIBLE_SINCE) == (expected, 2 + consumed)


@pytest.mark.parametrize(
    "encoded",
    [
        pytest.param("", id="nothing"),
        pytest.param("0000 0009 0000", id="cut in the numbers"),
        pytest.param("0000 0009 00000007 0005 63", id="cut in the client id"),
        pytest.param("0000 0009 00000007 fffe 00", id="negative length"),
        pytest.param("0000 0009 00000007 0002 c328 00", id="bad UTF-8"),
        pytest.param("0000 0009 00000007 ffff", id="no tagged section"),
        pytest.param("0000 0009 00000007 ffff 01 09 05 ab", id="tag past the end"),
        pytest.param("0000 0009 00000007 ffff ffffffffff", id="varint too long"),
    ],
)
def test_malformed_request_headers_are_refused(encoded: str) -> None:
    for after in (b"", bytes(100)):  # the next frame may be in the buffer already
        frame = bytes.fromhex(encoded)
        with pytest.raises(ProtocolError):
            decode_request_header(memoryview(frame + after), 0, len(frame), FLEXIBLE_SINCE)


@given(
    st.sampled_from([direction.api for direction in DIRECTIONS]),
    st.integers(-(2**31), 2**31 - 1),
    st.none() | st.text(max_size=20),
    st.data(),
)
@examples(50)
def test_request_headers_survive(
    api: AnyApi, correlation_id: int, client_id: str | None, data: st.DataObject
) -> None:
    version = data.draw(st.sampled_from(api.versions))
    encoded = encode_request_header(api, version, correlation_id, client_id)
    expected = RequestHeader(api.key, version, correlation_id, client_id)
    assert decode_request_header(memoryview(encoded), 0, len(encoded), FLEXIBLE_SINCE) == (
        expected,
        len(encoded),
    )


def test_a_client_id_beyond_kafkas_bound_is_refused() -> None:
    with pytest.raises(ProtocolError, match="client id of 32768 bytes"):
        encode_request_header(produce.API, 9, 1, "x" * 32768)


@pytest.mark.parametrize(
    ("api", "version", "expected"),
    [
        pytest.param(produce.API, 8, "00000007", id="plain"),
        pytest.param(produce.API, 9, "00000007 00", id="flexible"),
        pytest.param(offset_delete.API, 0, "00000007", id="never flexible"),
        pytest.param(api_versions.API, 3, "00000007", id="ApiVersions never has a tagged section"),
    ],
)
def test_response_headers(api: AnyApi, version: int, expected: str) -> None:
    encoded = encode_response_header(api, version, 7)
    assert encoded == bytes.fromhex(expected)
    assert peek_correlation_id(memoryview(encoded)) == 7
    assert decode_response_header(api, version, memoryview(encoded + b"body"), 0, 9) == (7, len(encoded))
    with pytest.raises(ProtocolError):
        decode_response_header(api, version, memoryview(encoded + b"body"), 0, len(encoded) - 1)


def test_a_response_without_a_correlation_id_is_refused() -> None:
    with pytest.raises(ProtocolError, match="3 bytes"):
        peek_correlation_id(memoryview(b"\0\0\0"))
    with pytest.raises(ProtocolError):
        decode_response_header(produce.API, 9, memoryview(b"\0\0\0"), 0, 3)
