"""AddPermission and RemovePermission as edits of a queue's policy document.

What a reader could get wrong
    The document may have come by SetQueueAttributes, and have anything in it: statements that are not understood are left as they are.
"""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from ropewalk.base.limits import SQS_POLICY_BYTES_MAX
from ropewalk.sqs.errors import OVER_LIMIT, SqsRefusal, invalid

ACTIONS_MAX: Final = 7
STATEMENTS_MAX: Final = 20
_LABEL: Final = re.compile(r"[A-Za-z0-9_-]{1,80}")
_ACCOUNT: Final = re.compile(r"\d{12}")
_SHARED: Final = frozenset(
    {
        "*",
        "SendMessage",
        "ReceiveMessage",
        "DeleteMessage",
        "ChangeMessageVisibility",
        "GetQueueAttributes",
        "GetQueueUrl",
        "ListDeadLetterSourceQueues",
        "PurgeQueue",
    }
)
_OWNERS: Final = frozenset(
    {
        "AddPermission",
        "CancelMessageMoveTask",
        "CreateQueue",
        "DeleteQueue",
        "ListMessageMoveTasks",
        "ListQueues",
        "ListQueueTags",
        "RemovePermission",
        "SetQueueAttributes",
        "StartMessageMoveTask",
        "TagQueue",
        "UntagQueue",
    }
)


def with_statement(
    policy: str | None, *, arn: str, label: str, accounts: Sequence[str], actions: Sequence[str]
) -> str:
    """Raises `SqsRefusal`."""
    if _LABEL.fullmatch(label) is None:
        reason = "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length."
        raise invalid("Label", label, reason)
    if len(actions) > ACTIONS_MAX:
        text = f"{len(actions)} Actions were found, maximum allowed is {ACTIONS_MAX}."
        raise SqsRefusal(OVER_LIMIT, text)
    for action in actions:
        _check_action(action)
    if not accounts or not all(_ACCOUNT.fullmatch(account) for account in accounts):
        raise invalid("PrincipalId", f"[{', '.join(accounts)}]", "Unable to verify.")
    document, statements = _parsed(policy)
    if any(_sid(statement) == label for statement in statements):
        raise invalid("Label", label, "Already exists.")
    if len(statements) >= STATEMENTS_MAX:
        text = f"{len(statements) + 1} statements were found, maximum allowed is {STATEMENTS_MAX}."
        raise SqsRefusal(OVER_LIMIT, text)
    document.setdefault("Version", "2008-10-17")
    document.setdefault("Id", f"{arn}/SQSDefaultPolicy")
    principals = [f"arn:aws:iam::{account}:root" for account in accounts]
    names = [f"SQS:{action}" for action in actions]
    document["Statement"] = [
        *statements,
        {
            "Sid": label,
            "Effect": "Allow",
            "Principal": {"AWS": _one_or_all(principals)},
            "Action": _one_or_all(names),
            "Resource": arn,
        },
    ]
    text = msgspec.json.encode(document).decode()
    if len(text) > SQS_POLICY_BYTES_MAX:
        raise SqsRefusal(OVER_LIMIT, f"A policy may have {SQS_POLICY_BYTES_MAX} bytes.")
    return text


def without_statement(policy: str | None, *, label: str) -> str | None:
    """None where nothing is left. Raises `SqsRefusal`."""
    document, statements = _parsed(policy)
    left = [statement for statement in statements if _sid(statement) != label]
    if len(left) == len(statements):
        where = "can't find label." if policy else "can't find label on existing policy."
        raise invalid("Label", label, where)
    if not left:
        return None
    document["Statement"] = left
    return msgspec.json.encode(document).decode()


def _check_action(action: str) -> None:
    if action in _OWNERS:
        reason = "Only the queue owner is allowed to invoke this action."
        raise invalid("ActionName", f"SQS:{action}", reason)
    if action not in _SHARED:
        reason = "Please refer to the appropriate WSDL for a list of valid actions."
        raise invalid("ActionName", f"SQS:{action}", reason)


def _parsed(policy: str | None) -> tuple[dict[str, object], list[object]]:
    if policy is None:
        return {}, []
    document = msgspec.json.decode(policy)
    assert isinstance(document, dict), "a policy was checked when it was set"
    statements = document.get("Statement", [])
    return document, statements if isinstance(statements, list) else [statements]


def _sid(statement: object) -> object:
    return statement.get("Sid") if isinstance(statement, dict) else None


def _one_or_all(values: list[str]) -> str | list[str]:
    return values[0] if len(values) == 1 else values
