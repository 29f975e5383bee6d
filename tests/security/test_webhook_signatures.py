"""Notices are signed so that the libraries of Standard Webhooks take them."""

import base64
import time

import pytest

from ropewalk.security.webhook_signatures import parse_secrets, signed_headers

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ANOTHER = "whsec_" + base64.b64encode(bytes(range(32))).decode()
BODY = b'{"test": 2432232314}'


def test_the_known_example_has_its_signature() -> None:
    """Of the libraries' own tests."""
    headers = signed_headers(
        parse_secrets(SECRET), message_id="msg_p5jXN8AQM9LWM0D4loKWxJek", at_s=1614265330, body=BODY
    )
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_library_takes_what_is_signed_and_nothing_else() -> None:
    standardwebhooks = pytest.importorskip(
        "standardwebhooks", reason="optional: standardwebhooks is not here"
    )
    at_s = int(time.time())
    headers = signed_headers(
        parse_secrets(f"{ANOTHER}\n{SECRET}\n"), message_id="msg_1", at_s=at_s, body=BODY
    )
    for secret in (SECRET, ANOTHER):
        assert standardwebhooks.Webhook(secret).verify(BODY, headers) == {"test": 2432232314}
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        standardwebhooks.Webhook(SECRET).verify(BODY + b" ", headers)
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        standardwebhooks.Webhook(SECRET).verify(BODY, {**headers, "webhook-id": "msg_2"})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "holds none"),
        ("# only a comment\n", "holds none"),
        ("whsec_!!!", "is not whsec_ and Base64"),
        ("whsec_" + base64.b64encode(bytes(23)).decode(), "has 23 bytes"),
        (f"{SECRET}\nwhsec_" + base64.b64encode(bytes(65)).decode(), "secret 2 of the file has 65 bytes"),
    ],
)
def test_a_secret_that_cannot_be_used_is_refused_without_being_shown(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        parse_secrets(text)
    assert text.partition("\n")[0].removeprefix("whsec_")[:6] not in str(refused.value) or not text
