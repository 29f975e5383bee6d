"""Who can log in, and who may do what: users, rules, and what the rules come to for somebody."""

from typing import Final

from msgspec import Struct

from ropewalk.base.errors import RopewalkError
from ropewalk.client.administration.acls import Acls
from ropewalk.client.administration.users import User, Users
from ropewalk.client.errors import RemoteError
from ropewalk.console.filled_in import confirm
from ropewalk.console.page import Asked, Done, Page, Shown, Wrong, link
from ropewalk.console.paging import paged
from ropewalk.security.access import ANY_HOST, Filter, Match, Operation, Pattern, Permission, Rule
from ropewalk.security.scram import BY_NAME, Mechanism
from ropewalk.views.rights import (
    Deciding,
    deciding,
    parse_operation,
    parse_principal,
    parse_resource,
    said,
    verdicts,
    word,
)
from ropewalk.wire.error_code import ErrorCode

_OPERATIONS: Final = tuple((word(each.name), word(each.name)) for each in Operation)
_MECHANISMS: Final = tuple((name, name) for name in sorted(BY_NAME, reverse=True))


class ShownVerdict(Struct, frozen=True):
    operation: str
    is_allowed: bool
    why: str


async def show(asked: Asked) -> Shown:
    user, resource = asked.query.get("user", "").strip(), asked.query.get("resource", "").strip()
    users, no_users = await _users(asked)
    trouble: str | None = None
    rules: list[Rule] = []
    may: list[ShownVerdict] = []
    try:
        rules = await _rules(asked, user, resource)
        if user and resource:
            may = await _may(asked, user, resource)
    except RemoteError as error:
        if error.code is not ErrorCode.SECURITY_DISABLED:
            trouble = str(error)
    except RopewalkError as error:  # users can be seen without the right to see rules
        trouble = str(error)
    decides = await _deciding(asked)
    values: dict[str, object] = {
        "users": paged(users, asked.query.get("users", "")),
        "no_users": no_users,
        "deciding": decides,
        "rules": paged([(each, said(each)) for each in rules], asked.query.get("page", "")),
        "kept": {"user": user or None, "resource": resource or None},
        "user": user,
        "resource": resource,
        "trouble": trouble,
        "may": may,
        "operations": _OPERATIONS,
        "mechanisms": _MECHANISMS,
        "said": {
            each: asked.form.text(each)
            for each in ("principal", "operation", "on", "permission", "pattern", "host", "who", "mechanism")
        },
        "exact_rule": _exact,
    }
    return Shown("access.html", values)


async def add_rule(asked: Asked) -> Done:
    resource_type, name = parse_resource(asked.form.text("on"))
    rule = Rule(
        resource_type,
        name,
        Pattern.PREFIXED if asked.form.text("pattern") == "prefix" else Pattern.LITERAL,
        parse_principal(asked.form.text("principal")),
        asked.form.text("host") or ANY_HOST,
        parse_operation(asked.form.text("operation")),
        Permission.DENY if asked.form.text("permission") == "deny" else Permission.ALLOW,
    )
    await Acls(asked.client).add([rule])
    return Done(link("access"), f"there is a rule: {' '.join(said(rule))}")


async def remove_rule(asked: Asked) -> Done:
    """That which says exactly this."""
    principal, permission, operation, kind, name, pattern, host = _fields(asked)
    resource_type, _ = parse_resource(f"{kind}:{name}" if kind != "cluster" else kind)
    wanted = Filter(
        resource_type,
        name,
        Match.PREFIXED if pattern == "prefixed" else Match.LITERAL,
        principal,
        host,
        parse_operation(operation),
        Permission.DENY if permission == "deny" else Permission.ALLOW,
    )
    removed = await Acls(asked.client).remove(wanted)
    if not removed:
        raise Wrong("there is no such rule any more")
    return Done(link("access"), f"the rule is gone: {' '.join(said(removed[0]))}")


async def set_password(asked: Asked) -> Done:
    """Of a user who may be new."""
    name, password = asked.form.text("who"), asked.form.raw("password")
    mechanism = BY_NAME.get(asked.form.text("mechanism"))
    if not name or not password:
        raise Wrong("say a user and a password")
    if mechanism is None:
        raise Wrong("choose a mechanism")
    await Users(asked.client, asked.rng).set_password(name, password, mechanism)
    return Done(link("access"), f"{name} has this password for {_name_of(mechanism)}")


async def remove_user(asked: Asked) -> Done:
    name = asked.form.raw("who")
    confirm(asked.form.text("typed"), name)
    users = Users(asked.client, asked.rng)
    found = await users.find([name])
    if not found:
        raise Wrong(f"there is no user {name!r} any more")
    for mechanism in found[0].iterations:
        await users.remove(name, mechanism)
    return Done(link("access"), f"{name} cannot log in any more")


async def _users(asked: Asked) -> tuple[list[tuple[User, str]], str]:
    """With the mechanisms of each in words; or why they cannot be seen."""
    try:
        users = await Users(asked.client, asked.rng).find()
    except RopewalkError as error:
        return [], str(error)
    return [(each, ", ".join(sorted(map(_name_of, each.iterations)))) for each in users], ""


async def _deciding(asked: Asked) -> Deciding | None:
    """None where that cannot be seen."""
    try:
        return await deciding(asked.client)
    except RopewalkError:
        return None


async def _rules(asked: Asked, user: str, resource: str) -> list[Rule]:
    resource_type, name = parse_resource(resource) if resource else (None, None)
    wanted = Filter(resource_type, name, Match.ANY if name is None else Match.MATCH)
    found = await Acls(asked.client).find(wanted)
    if not user:
        return found
    principal = parse_principal(user)
    return [each for each in found if each.principal in (principal, "User:*")]


async def _may(asked: Asked, user: str, resource: str) -> list[ShownVerdict]:
    resource_type, name = parse_resource(resource)
    found = await verdicts(asked.client, parse_principal(user), "", resource_type, name)
    return [
        ShownVerdict(
            word(operation.name),
            verdict.is_allowed,
            str(verdict.reason)
            if verdict.rule is None
            else f"{verdict.reason}: {' '.join(said(verdict.rule))}",
        )
        for operation, verdict in found
    ]


_FIELDS: Final = ("principal", "permission", "operation", "kind", "name", "pattern", "host")


def _exact(rule: Rule) -> list[tuple[str, str]]:
    """A rule as fields of a form, such that this one is meant and no other."""
    values = (
        rule.principal,
        word(rule.permission.name),
        word(rule.operation.name),
        word(rule.resource_type.name),
        rule.name,
        word(rule.pattern.name),
        rule.host,
    )
    return list(zip(_FIELDS, values, strict=True))


def _fields(asked: Asked) -> list[str]:
    return [asked.form.raw(each) for each in _FIELDS]


def _name_of(mechanism: Mechanism) -> str:
    return next(name for name, each in BY_NAME.items() if each is mechanism)


PAGE: Final = Page(
    name="access",
    title="Access",
    menu="Access",
    key="u",
    show=show,
    actions={
        "add-rule": add_rule,
        "remove-rule": remove_rule,
        "set-password": set_password,
        "remove-user": remove_user,
    },
)
