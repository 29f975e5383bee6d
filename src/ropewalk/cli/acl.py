"""`ropewalk acl`: who may do what, by Kafka's rules: list them, add and remove them, and ask which one decides."""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from ropewalk.cli.commands import new_app
from ropewalk.cli.failure import Failed, guarded
from ropewalk.cli.options import BootstrapOption, Output, OutputOption, PropertyOption, chosen_output
from ropewalk.cli.output import print_json, print_table

if TYPE_CHECKING:
    from ropewalk.client.calls.client import Client
    from ropewalk.security.access import Operation, ResourceType, Rule, Verdict

app = new_app("Rights: who may do what, as rules. Nodes decide by them where `authorizer.class.name` is set.")

_RESOURCES: Final = "topic:NAME, group:NAME, transactional-id:NAME, user:NAME or cluster"

UserArgument = Annotated[
    str, typer.Argument(metavar="USER", help="A user by name, * for everybody, or a principal as Group:NAME.")
]
OperationArgument = Annotated[
    str, typer.Argument(metavar="OPERATION", help="read, write, describe, alter-configs, …, or all.")
]
ResourceArgument = Annotated[str, typer.Argument(metavar="RESOURCE", help=f"{_RESOURCES}; * for every name.")]
DenyOption = Annotated[bool, typer.Option("--deny", help="A rule that denies, which counts whatever allows.")]
PrefixOption = Annotated[
    bool, typer.Option("--prefix", help="The rule is about all names that begin like that.")
]
HostOption = Annotated[
    str, typer.Option("--host", metavar="ADDRESS", help="Only from this address.", show_default=False)
]


@app.command("ls")
@app.command("list", hidden=True)
@guarded
def list_rules(
    ctx: typer.Context,
    user: Annotated[str | None, typer.Option("--user", metavar="USER", help="Rules about this user.")] = None,
    resource: Annotated[
        str | None,
        typer.Option("--resource", metavar="RESOURCE", help=f"Rules that apply to it: {_RESOURCES}."),
    ] = None,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """List rules: all, or those about a user, or those that apply to a resource."""
    from ropewalk.cli.connect import with_client
    from ropewalk.client.administration.acls import Acls
    from ropewalk.security.access import Filter, Match

    resource_type, name = (None, None) if resource is None else _resource(resource)
    wanted = Filter(
        resource_type,
        name,
        Match.ANY if name is None else Match.MATCH,
        None if user is None else _principal(user),
    )

    async def work(client: "Client") -> "list[Rule]":
        return await Acls(client).find(wanted)

    _show(with_client(ctx, work, bootstrap=bootstrap, properties=properties), chosen_output(ctx, output))


@app.command("add")
@guarded
def add_rule(
    ctx: typer.Context,
    user: UserArgument,
    operation: OperationArgument,
    resource: ResourceArgument,
    deny: DenyOption = False,
    prefix: PrefixOption = False,
    host: HostOption = "*",
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Allow or deny a user an operation on a resource. Adding a rule twice is adding it once."""
    from ropewalk.cli.connect import with_client
    from ropewalk.client.administration.acls import Acls

    rule = _rule(user, operation, resource, deny=deny, prefix=prefix, host=host)

    async def work(client: "Client") -> "list[Rule]":
        await Acls(client).add([rule])
        return [rule]

    _show(with_client(ctx, work, bootstrap=bootstrap, properties=properties), chosen_output(ctx, output))


@app.command("rm")
@guarded
def remove_rule(
    ctx: typer.Context,
    user: UserArgument,
    operation: OperationArgument,
    resource: ResourceArgument,
    deny: DenyOption = False,
    prefix: PrefixOption = False,
    host: HostOption = "*",
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Remove the rule that says exactly this, and show it."""
    from ropewalk.cli.connect import with_client
    from ropewalk.client.administration.acls import Acls
    from ropewalk.security.access import Filter, Match

    rule = _rule(user, operation, resource, deny=deny, prefix=prefix, host=host)
    wanted = Filter(
        rule.resource_type,
        rule.name,
        Match(rule.pattern),
        rule.principal,
        rule.host,
        rule.operation,
        rule.permission,
    )

    async def work(client: "Client") -> "list[Rule]":
        return await Acls(client).remove(wanted)

    removed = with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    if not removed:
        raise Failed("there is no such rule; `ropewalk acl ls` shows which there are")
    _show(removed, chosen_output(ctx, output))


@app.command("check")
@guarded
def check_right(
    ctx: typer.Context,
    user: UserArgument,
    operation: OperationArgument,
    resource: ResourceArgument,
    host: HostOption = "",
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Say whether a user may, and which rule decides. Ends with 1 where he may not."""
    from ropewalk.cli.connect import with_client
    from ropewalk.views.rights import verdicts

    asked_operation = _operation(operation)
    resource_type, name = _resource(resource)

    async def work(client: "Client") -> "Verdict":
        found = await verdicts(client, _principal(user), host, resource_type, name, [asked_operation])
        return found[0][1]

    verdict = with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    if chosen_output(ctx, output) is Output.JSON:
        print_json(
            {
                "allowed": verdict.is_allowed,
                "reason": str(verdict.reason),
                "rule": None if verdict.rule is None else _document(verdict.rule),
            }
        )
    else:
        said = "" if verdict.rule is None else f": {' '.join(_row(verdict.rule))}"
        print(f"{'allowed' if verdict.is_allowed else 'denied'}: {verdict.reason}{said}")
    if not verdict.is_allowed:
        raise typer.Exit(1)


def _rule(user: str, operation: str, resource: str, *, deny: bool, prefix: bool, host: str) -> "Rule":
    from ropewalk.security.access import Pattern, Permission, Rule

    resource_type, name = _resource(resource)
    return Rule(
        resource_type,
        name,
        Pattern.PREFIXED if prefix else Pattern.LITERAL,
        _principal(user),
        host,
        _operation(operation),
        Permission.DENY if deny else Permission.ALLOW,
    )


def _principal(user: str) -> str:
    from ropewalk.cli.offsets import said
    from ropewalk.views.rights import parse_principal

    return said(parse_principal, user, option="USER")


def _operation(text: str) -> "Operation":
    from ropewalk.cli.offsets import said
    from ropewalk.views.rights import parse_operation

    return said(parse_operation, text, option="OPERATION")


def _resource(text: str) -> "tuple[ResourceType, str]":
    from ropewalk.cli.offsets import said
    from ropewalk.views.rights import parse_resource

    return said(parse_resource, text, option="RESOURCE")


def _show(rules: "list[Rule]", output: Output) -> None:
    if output is Output.JSON:
        print_json([_document(rule) for rule in rules])
    else:
        print_table(
            ("PRINCIPAL", "PERMISSION", "OPERATION", "RESOURCE", "HOST"), [_row(rule) for rule in rules]
        )


def _document(rule: "Rule") -> dict[str, object]:
    from ropewalk.views.rights import word

    return {
        "principal": rule.principal,
        "permission": word(rule.permission.name),
        "operation": word(rule.operation.name),
        "resource_type": word(rule.resource_type.name),
        "name": rule.name,
        "pattern": word(rule.pattern.name),
        "host": rule.host,
    }


def _row(rule: "Rule") -> tuple[str, ...]:
    from ropewalk.views.rights import said

    return said(rule)
