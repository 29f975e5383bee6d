"""Signatures as AWS's own library makes them, for any keys, bodies, addresses and times."""

from datetime import UTC, datetime
from unittest import mock

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotoCredentials
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.security.sigv4_signing import Credentials, Signer, canonical_query

WORDS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20)


def as_botocore_signs(
    credentials: Credentials,
    method: str,
    url: str,
    headers: dict[str, str],
    body: bytes,
    region: str,
    now: datetime,
) -> str:
    request = AWSRequest(method=method, url=url, headers=headers, data=body)
    keys = BotoCredentials(credentials.access_key, credentials.secret_key, credentials.session_token or None)
    with mock.patch("botocore.auth.get_current_datetime", return_value=now.replace(tzinfo=None)):
        SigV4Auth(keys, "sqs", region).add_auth(request)
    return str(request.headers["Authorization"])


@given(
    key=WORDS,
    secret=WORDS,
    token=st.just("") | WORDS,
    region=st.sampled_from(["us-east-1", "eu-central-1"]),
    target=st.sampled_from(["AmazonSQS.SendMessage", "Ropewalk.AdoptQueue"]),
    body=st.binary(max_size=200),
    now=st.datetimes(min_value=datetime(2020, 1, 1), max_value=datetime(2040, 1, 1)),
    query=st.dictionaries(WORDS, st.text(max_size=10), max_size=3),
)
def test_signatures_agree_with_botocore(
    key: str,
    secret: str,
    token: str,
    region: str,
    target: str,
    body: bytes,
    now: datetime,
    query: dict[str, str],
) -> None:
    now = now.replace(microsecond=0, tzinfo=UTC)
    credentials = Credentials(key, secret, token)
    headers = {"host": "127.0.0.1:9324", "content-type": "application/x-amz-json-1.0", "x-amz-target": target}
    signer = Signer(credentials, region=region, service="sqs")
    signed = signer.signed("POST", "/", headers, body, now_ms=int(now.timestamp() * 1000), query=query)
    url = f"http://127.0.0.1:9324/?{canonical_query(query)}" if query else "http://127.0.0.1:9324/"
    expected = as_botocore_signs(credentials, "POST", url, dict(headers), body, region, now)
    assert signed["authorization"] == expected


def test_a_key_lasts_for_a_day_and_the_next_day_has_another() -> None:
    credentials = Credentials("a", "b")
    signer = Signer(credentials, region="us-east-1", service="sqs")
    for now_ms in (0, 86_399_000, 86_400_000, 3_600_000):
        fresh = Signer(credentials, region="us-east-1", service="sqs")
        headers = {"host": "n"}
        assert signer.signed("GET", "/", headers, b"", now_ms=now_ms) == fresh.signed(
            "GET", "/", headers, b"", now_ms=now_ms
        )


@pytest.mark.parametrize("shown", [repr, str])
def test_a_secret_is_never_shown(shown: "type[str]") -> None:
    assert "hush" not in shown(Credentials("a", "hush", "hush"))
