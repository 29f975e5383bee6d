"""Who may do what, as people say it, and how it is decided: rules and the policy above them, asked of the cluster.

What a reader could get wrong
    A verdict here is what the rules say, and counts where nodes decide by rules. Where they do not, everybody may do everything.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ropewalk.client.administration.acls import Acls
from ropewalk.client.administration.admin import Admin, ResourceKind
from ropewalk.client.calls.client import Client
from ropewalk.security.access import (
    CLUSTER_NAME,
    Asker,
    Filter,
    Match,
    Operation,
    Pattern,
    Policy,
    ResourceType,
    Rule,
    Rules,
    Verdict,
    decide,
    policy_from,
)
from ropewalk.views.words import NotUnderstood

RESOURCES: Final = "topic:NAME, group:NAME, transactional-id:NAME, user:NAME or cluster"
_TOPIC: Final = (
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
_CLUSTER: Final = (
    Operation.CREATE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.CLUSTER_ACTION,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
    Operation.IDEMPOTENT_WRITE,
)
_OF: Final = {
    ResourceType.TOPIC: _TOPIC,
    ResourceType.GROUP: (Operation.READ, Operation.DESCRIBE, Operation.DELETE),
    ResourceType.CLUSTER: _CLUSTER,
    ResourceType.TRANSACTIONAL_ID: (Operation.DESCRIBE, Operation.WRITE),
    ResourceType.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
    ResourceType.DELEGATION_TOKEN: (Operation.DESCRIBE,),
}
"""What can be done with what."""


class Deciding(Struct, frozen=True):
    """What a cluster decides by."""

    is_decided: bool
    """Whether nodes ask the rules at all."""
    policy: Policy


def parse_principal(text: str) -> str:
    """A user by name, * for everybody, or a principal as Group:NAME."""
    if not text:
        raise NotUnderstood("say a user, * for everybody, or a principal as Group:NAME")
    return text if ":" in text else f"User:{text}"


def parse_operation(text: str) -> Operation:
    try:
        return Operation[text.upper().replace("-", "_")]
    except KeyError:
        known = ", ".join(word(each.name) for each in Operation)
        raise NotUnderstood(f"{text!r} is none of {known}") from None


def parse_resource(text: str) -> tuple[ResourceType, str]:
    kind, _, name = text.partition(":")
    if kind == "cluster" and name in ("", CLUSTER_NAME):
        return ResourceType.CLUSTER, CLUSTER_NAME
    try:
        resource_type = ResourceType[kind.upper().replace("-", "_")]
    except KeyError:
        resource_type = ResourceType.CLUSTER
    if not name or resource_type is ResourceType.CLUSTER:
        raise NotUnderstood(f"{text!r} is not {RESOURCES}")
    return resource_type, name


def said(rule: Rule) -> tuple[str, ...]:
    """Principal, permission, operation, resource and host."""
    ending = "…" if rule.pattern is Pattern.PREFIXED else ""
    return (
        rule.principal,
        word(rule.permission.name),
        word(rule.operation.name),
        f"{word(rule.resource_type.name)}:{rule.name}{ending}",
        rule.host,
    )


def word(name: str) -> str:
    return name.lower().replace("_", "-")


async def deciding(client: Client) -> Deciding:
    """As the configuration of a broker says."""
    admin = Admin(client)
    node_id = (await admin.describe_cluster()).brokers[0][0]
    values = {
        each.name: each.value or ""
        for each in await admin.describe_settings(ResourceKind.BROKER, str(node_id))
    }
    policy = policy_from(values.get("super.users", ""), values.get("allow.everyone.if.no.acl.found", ""))
    return Deciding(bool(values.get("authorizer.class.name")), policy)


async def verdicts(
    client: Client,
    principal: str,
    host: str,
    resource_type: ResourceType,
    name: str,
    operations: Sequence[Operation] = (),
) -> list[tuple[Operation, Verdict]]:
    """For these operations, or all that there are of such a resource."""
    found = await Acls(client).find(Filter(resource_type, name, Match.MATCH))
    policy = (await deciding(client)).policy
    rules = Rules()
    for rule in found:
        rules.add(rule)
    return [
        (each, decide(rules, policy, Asker((principal,), host), each, resource_type, name))
        for each in operations or _OF[resource_type]
    ]
