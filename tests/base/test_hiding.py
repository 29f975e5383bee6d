"""Secrets in text that is to be shown are not shown; what is none stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.hiding import HIDDEN, hide

SECRET = "Planted0123456789"
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    "text",
    [
        f"sasl.password={SECRET}",
        f"sasl.password = {SECRET}  # node.toml",
        f"sasl.password: {SECRET}",
        f'sasl.jaas.config = "x password={SECRET}"',
        f'{{"cluster.secret": "{SECRET}", "node.id": "7"}}',
        f'{{"password": "a \\"{SECRET}\\" b"}}',
        f"cluster.secret.previous = {SECRET}",
        f"ssl_key_password='{SECRET}'",
        f"AWS_SECRET_ACCESS_KEY={SECRET}",
        f"api-key: {SECRET}",
        f"Authorization: Basic {SECRET}",
        f'"authorization": "Bearer {SECRET}"',
        f"it showed Bearer {SECRET} there",
        f"https://ada:{SECRET}@example.org/hook",
        f"etcd://{SECRET}@10.0.0.1:2379",
        f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n-----END RSA PRIVATE KEY-----",
        f"-----BEGIN PRIVATE KEY-----\n{SECRET}",
        f"whsec_{SECRET}",
        f"alerts.webhook = https://hooks.example.org/{SECRET}",
        f'{{"alerts.webhook": "https://hooks.example.org/a/{SECRET}"}}',
        f'{{"name": "alerts.webhook", "value": "https://ada:{SECRET}@example.org/"}}',
    ],
)
def test_a_secret_is_hidden(text: str) -> None:
    assert SECRET not in hide(text)
    assert HIDDEN in hide(text)


def test_a_token_is_known_by_its_form() -> None:
    assert JWT not in hide(f"it said {JWT} to us")


@pytest.mark.parametrize(
    "text",
    [
        "cluster.secret.file = /etc/ropewalk/secret",
        "ssl.keystore.location=/etc/ropewalk/node.pem",
        "sasl.oauthbearer.token.endpoint.url = https://example.org/token",
        'ropewalk_served_total{kind="produce"} 5',
        "http://127.0.0.1:9644/metrics",
        '{"password": ""}',
        "a password is taken over TLS",
        "/etc/keys/a@b",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert hide(text) == text


@given(st.text(), st.text(min_size=4))
def test_what_is_known_to_be_secret_is_nowhere(text: str, secret: str) -> None:
    assume_other = secret not in HIDDEN and HIDDEN not in secret
    if assume_other and not set(secret) & set(HIDDEN):
        assert secret not in hide(f"{text}{secret}{text}", [secret])


def test_a_short_word_is_not_taken_out_of_everything() -> None:
    assert hide("the cat", ["cat"]) == "the cat"
