"""Kafka's own authorizer decides as ours does; `tests/security/run-acl-oracle` asks it a million times."""

import pytest

from tests.security.acl_oracle import ask_kafka, compare

CASES = """
rules false TOPIC,a,LITERAL,User:alice,*,READ,ALLOW TOPIC,ab,PREFIXED,User:*,10.0.0.2,ALL,DENY
may alice 10.0.0.1 DESCRIBE TOPIC a ALLOWED
may alice 10.0.0.1 WRITE TOPIC a DENIED
may bob 10.0.0.1 READ TOPIC a DENIED
may root 10.0.0.1 ALTER TOPIC a ALLOWED
any alice 10.0.0.1 WRITE DENIED
any alice 10.0.0.1 READ ALLOWED
find ANY abc MATCH - - ANY ANY TOPIC,ab,PREFIXED,User:*,10.0.0.2,ALL,DENY
find TOPIC a ANY - - ANY ANY TOPIC,a,LITERAL,User:alice,*,READ,ALLOW
"""


def test_cases_that_kafka_was_asked_once_still_come_to_the_same() -> None:
    assert compare(CASES.strip().splitlines()) == {"rules": 1, "may": 4, "any": 2, "find": 2}


def test_a_decision_that_differs_is_noticed() -> None:
    with pytest.raises(AssertionError):
        compare(["rules false", "may alice 10.0.0.1 READ TOPIC a ALLOWED"])


def test_kafkas_own_authorizer_decides_as_ours() -> None:
    agreed = ask_kafka(7, rounds=1_000, questions=10)
    assert agreed == {"rules": 1_000, "may": 10_000, "any": 1_000, "find": 1_000}
