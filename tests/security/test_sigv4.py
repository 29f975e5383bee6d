"""Signatures of AWS's own library are verified, and whatever differs from what was signed is refused."""

import hmac
import re
from calendar import timegm
from collections.abc import Mapping
from time import strptime
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import pytest
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.base.limits import SIGNING_KEYS_MAX
from ropewalk.security.sigv4 import (
    MISMATCH_TEXT,
    SKEW_MS_MAX,
    Claim,
    SignatureRefused,
    SigningKey,
    SigningKeys,
    WhyRefused,
    claimed,
    verify,
)

KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


class Signed(NamedTuple):
    """A request as it goes over the wire."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    at_ms: int


def sign(
    method: str = "POST",
    url: str = "http://127.0.0.1:9324/",
    headers: Mapping[str, str] | None = None,
    body: bytes = b"{}",
    *,
    token: str | None = None,
    region: str = "eu-west-1",
    service: str = "sqs",
    expires_s: int | None = None,
) -> Signed:
    request = AWSRequest(method=method, url=url, headers=dict(headers or {}), data=body)
    credentials = Credentials(KEY, SECRET, token)
    auth: Any = (
        SigV4Auth(credentials, service, region)
        if expires_s is None
        else SigV4QueryAuth(credentials, service, region, expires=expires_s)
    )
    auth.add_auth(request)
    parts = urlsplit(request.url)
    sent = {name.lower(): str(value).strip() for name, value in request.headers.items()}
    sent.setdefault("host", parts.netloc)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    match = re.search(r"X-Amz-Date=(\w+)", request.url)
    date = sent["x-amz-date"] if match is None else match[1]
    return Signed(method, target, sent, body, 1000 * timegm(strptime(date, "%Y%m%dT%H%M%SZ")))


def check(signed: Signed, *, now_ms: int | None = None, secret: str | None = SECRET) -> Claim:
    return verify(
        signed.method,
        signed.target,
        signed.headers,
        signed.body,
        secret_of=lambda key: secret if key == KEY else None,
        service="sqs",
        now_ms=signed.at_ms if now_ms is None else now_ms,
        signing_keys=SigningKeys(),
    )


WORDS = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF), max_size=12)
SEGMENTS = st.lists(WORDS.map(lambda word: quote(word, safe="-_.~:@!$()*,;=")), max_size=4)
OWN_NAMES = WORDS.filter(lambda name: bool(name) and not name.lower().startswith("x-amz-"))
"""Not those of the signature itself, which Hypothesis knows from this file and from the source."""
QUERIES = st.dictionaries(OWN_NAMES, WORDS, max_size=4)
HEADER_VALUES = st.text(st.sampled_from("abc XYZ\t09-=;"), max_size=12)
HEADERS = st.dictionaries(st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True), HEADER_VALUES, max_size=4)


@given(SEGMENTS, QUERIES, HEADERS, st.binary(max_size=64), st.sampled_from(["POST", "GET"]))
@settings(max_examples=300, deadline=None)
def test_whatever_botocore_signs_is_verified(
    segments: list[str], query: dict[str, str], headers: dict[str, str], body: bytes, method: str
) -> None:
    written = "&".join(
        f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in query.items()
    )
    own = {f"x-test-{name}": value for name, value in headers.items()}
    url = f"http://queue.local:9324/{'/'.join(segments)}" + (f"?{written}" if written else "")
    claim = check(sign(method, url, {"Content-Type": "application/x-amz-json-1.0", **own}, body))
    assert claim == Claim(KEY, claim.day, "eu-west-1", "sqs", "aws4_request")


@given(QUERIES, st.integers(1, 604_800))
@settings(max_examples=100, deadline=None)
def test_whatever_botocore_presigns_is_verified(query: dict[str, str], expires_s: int) -> None:
    written = "&".join(
        f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in query.items()
    )
    url = f"http://queue.local:9324/000000000000/jobs?Action=ReceiveMessage&{written}".rstrip("&")
    signed = sign("GET", url, body=b"", expires_s=expires_s)
    assert check(signed).access_key == KEY
    assert check(signed, now_ms=signed.at_ms + 1000 * expires_s).access_key == KEY
    with pytest.raises(SignatureRefused, match="Signature expired"):
        check(signed, now_ms=signed.at_ms + 1000 * expires_s + 1)


@pytest.mark.parametrize("expires_s", [None, 60], ids=["header", "presigned"])
def test_a_session_token_is_taken_as_it_is(expires_s: int | None) -> None:
    signed = sign(
        "GET", "http://h/?Action=ListQueues", body=b"", token="a/token+with=signs", expires_s=expires_s
    )
    assert check(signed).access_key == KEY


def test_a_signature_counts_for_fifteen_minutes_either_way() -> None:
    signed = sign()
    for shift_ms in (-SKEW_MS_MAX, SKEW_MS_MAX):
        assert check(signed, now_ms=signed.at_ms + shift_ms).access_key == KEY
    with pytest.raises(
        SignatureRefused, match=r"Signature expired: \w+ is now earlier than \w+ \(\w+ - 15 min\.\)"
    ):
        check(signed, now_ms=signed.at_ms + SKEW_MS_MAX + 1)
    with pytest.raises(SignatureRefused, match=r"Signature not yet current: \w+ is still later than"):
        check(signed, now_ms=signed.at_ms - SKEW_MS_MAX - 1)


def _headers(**changes: str | None) -> Signed:
    signed = sign(headers={"X-Amz-Target": "AmazonSQS.ListQueues"})
    merged = {**signed.headers, **{name.replace("_", "-"): value for name, value in changes.items()}}
    return signed._replace(headers={name: value for name, value in merged.items() if value is not None})


def _authorization(old: str, new: str) -> Signed:
    signed = sign(headers={"X-Amz-Target": "AmazonSQS.ListQueues"})
    changed = re.sub(old, new, signed.headers["authorization"])
    assert changed != signed.headers["authorization"]
    return signed._replace(headers={**signed.headers, "authorization": changed})


@pytest.mark.parametrize(
    ("signed", "why", "text"),
    [
        pytest.param(sign()._replace(body=b"{ }"), WhyRefused.MISMATCH, re.escape(MISMATCH_TEXT), id="body"),
        pytest.param(sign()._replace(method="PUT"), WhyRefused.MISMATCH, "does not match", id="method"),
        pytest.param(sign()._replace(target="/q"), WhyRefused.MISMATCH, "does not match", id="path"),
        pytest.param(sign()._replace(target="/?a=b"), WhyRefused.MISMATCH, "does not match", id="query"),
        pytest.param(_headers(host="other"), WhyRefused.MISMATCH, "does not match", id="host"),
        pytest.param(
            _headers(x_amz_target="AmazonSQS.DeleteQueue"), WhyRefused.MISMATCH, "does not match", id="action"
        ),
        pytest.param(
            _authorization("x-amz-target;?|;x-amz-target", ""),
            WhyRefused.MISMATCH,
            "'x-amz-target' must be a 'SignedHeader'",
            id="action is not signed",
        ),
        pytest.param(
            _authorization("=host;", "="), WhyRefused.MISMATCH, "'Host' or", id="host is not signed"
        ),
        pytest.param(_headers(x_amz_date=None), WhyRefused.INCOMPLETE, "X-Amz-Date", id="no date"),
        pytest.param(
            _headers(x_amz_date="20261318T999999Z"),
            WhyRefused.MISMATCH,
            "Date in Credential scope",
            id="other day",
        ),
        pytest.param(_authorization("AWS4", "AWS5"), WhyRefused.INCOMPLETE, "Unsupported", id="algorithm"),
        pytest.param(_authorization(", Signature=.*", ""), WhyRefused.INCOMPLETE, "'Signature'", id="none"),
        pytest.param(
            _authorization("Signature=.", "Signature=x"), WhyRefused.MISMATCH, "does not", id="forged"
        ),
        pytest.param(
            _authorization("Signature=.", "Signature=é"), WhyRefused.MISMATCH, "does not", id="no hex"
        ),
        pytest.param(
            _authorization("/sqs/", "/s3/"), WhyRefused.MISMATCH, "correct service: 'sqs'", id="service"
        ),
        pytest.param(
            sign(service="s3"), WhyRefused.MISMATCH, "correct service", id="signed for another service"
        ),
        pytest.param(_authorization("eu-west-1", "us-east-1"), WhyRefused.MISMATCH, "does not", id="region"),
        pytest.param(
            _authorization("aws4_request", "aws"), WhyRefused.MISMATCH, "terminator", id="terminator"
        ),
        pytest.param(
            _authorization("/eu-west-1", ""), WhyRefused.INCOMPLETE, "5 slash-delimited", id="scope"
        ),
        pytest.param(_authorization(KEY, "AKIDOTHER"), WhyRefused.UNKNOWN_KEY, "unknown", id="key"),
        pytest.param(_headers(authorization=None), WhyRefused.MISSING, "missing", id="nothing"),
        pytest.param(
            sign("GET", "http://h/?Action=X", body=b"", expires_s=60)._replace(target="/?X-Amz-Credential=a"),
            WhyRefused.INCOMPLETE,
            "X-Amz-Algorithm",
            id="half a presigned address",
        ),
    ],
)
def test_what_was_not_signed_so_is_refused(signed: Signed, why: WhyRefused, text: str) -> None:
    with pytest.raises(SignatureRefused, match=text) as caught:
        check(signed)
    assert caught.value.why is why


def test_a_wrong_secret_is_refused() -> None:
    with pytest.raises(SignatureRefused, match="does not match"):
        check(sign(), secret="another")


def test_no_more_signing_keys_are_kept_than_may() -> None:
    keys = SigningKeys()
    first = keys.get(Claim(KEY, "20261118", "r", "sqs"), SECRET)
    for number in range(2 * SIGNING_KEYS_MAX):
        keys.get(Claim(KEY, "20261118", f"r-{number}", "sqs"), SECRET)
        assert len(keys) <= SIGNING_KEYS_MAX
    again = keys.get(Claim(KEY, "20261118", "r", "sqs"), SECRET)
    assert again.signature(b"text") == first.signature(b"text")


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=300))
def test_a_signing_key_signs_as_hmac_does(key: bytes, text: bytes) -> None:
    assert SigningKey(key).signature(text) == hmac.digest(key, text, "sha256").hex()


@given(st.text(max_size=200), st.text(max_size=40), st.text(max_size=80))
@settings(max_examples=300, deadline=None)
def test_no_text_does_more_than_be_refused(authorization: str, date: str, target: str) -> None:
    for prefix in (
        "",
        "AWS4-HMAC-SHA256 ",
        f"AWS4-HMAC-SHA256 Credential={KEY}/20261118/r/sqs/aws4_request,",
    ):
        headers = {"authorization": prefix + authorization, "x-amz-date": date, "host": "h"}
        claimed(headers, {})
        with pytest.raises(SignatureRefused):
            check(Signed("POST", f"/?{target}", headers, b"", 1_800_000_000_000))
        with pytest.raises(SignatureRefused):
            check(Signed("GET", f"/?X-Amz-Signature=0&{target}", {"host": "h"}, b"", 1_800_000_000_000))
