"""Our decisions held against those of Kafka's own StandardAuthorizer, as `AclOracle.java` prints them."""

import subprocess
from collections import Counter
from collections.abc import Iterable

from ropewalk.security.access import (
    Asker,
    Filter,
    Match,
    Operation,
    Pattern,
    Permission,
    Policy,
    ResourceType,
    Rule,
    Rules,
    allows_any,
    decide,
)
from tests.compat.java_tools import class_path_of, java_command

ROOT = frozenset({"User:root"})


def ask_kafka(seed: int, *, rounds: int, questions: int) -> Counter[str]:
    """How many decisions, questions about any topic and look-ups agreed; raises `AssertionError` at the first that does not."""
    class_path = class_path_of("AclOracle", "kafka_2.13", "4.3.1")
    command = java_command(class_path, "AclOracle", str(seed), str(rounds), str(questions))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as oracle:
        assert oracle.stdout is not None
        agreed = compare(oracle.stdout)
    assert oracle.returncode == 0
    return agreed


def compare(lines: Iterable[str]) -> Counter[str]:
    agreed: Counter[str] = Counter()
    rules, policy = Rules(), Policy()
    for line in lines:
        kind, *words = line.split()
        if kind == "rules":
            policy = Policy(ROOT, words[0] == "true")
            for gone in list(rules):  # the index is emptied rule by rule, and filled again
                rules.remove(gone)
            for said in words[1:]:
                rules.add(_rule(said))
        elif kind == "may":
            user, host, operation, resource_type, name, verdict = words
            asker = Asker((f"User:{user}",), host)
            ours = decide(rules, policy, asker, Operation[operation], ResourceType[resource_type], name)
            assert ours.is_allowed == (verdict == "ALLOWED"), (line, policy, list(rules))
        elif kind == "any":
            user, host, operation, verdict = words
            asker = Asker((f"User:{user}",), host)
            any_topic = allows_any(rules, policy, asker, Operation[operation], ResourceType.TOPIC)
            assert any_topic == (verdict == "ALLOWED"), (line, policy, list(rules))
        else:
            assert kind == "find"
            wanted = _filter(*words[:7])
            found = {rule for rule in rules if wanted.accepts(rule)}
            assert found == set(map(_rule, words[7:])), (line, list(rules))
        agreed[kind] += 1
    return agreed


def _rule(said: str) -> Rule:
    resource_type, name, pattern, principal, host, operation, permission = said.split(",")
    return Rule(
        ResourceType[resource_type],
        name,
        Pattern[pattern],
        principal,
        host,
        Operation[operation],
        Permission[permission],
    )


def _filter(*words: str) -> Filter:
    resource_type, name, match, principal, host, operation, permission = words
    return Filter(
        None if resource_type == "ANY" else ResourceType[resource_type],
        None if name == "-" else name,
        Match[match],
        None if principal == "-" else principal,
        None if host == "-" else host,
        None if operation == "ANY" else Operation[operation],
        None if permission == "ANY" else Permission[permission],
    )
