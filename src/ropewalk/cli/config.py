"""`ropewalk config`: which settings there are, and which values a node would take from here."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from ropewalk.cli.commands import new_app
from ropewalk.cli.failure import Failed, guarded
from ropewalk.cli.node_options import (
    ConfigOption,
    DataOption,
    KafkaOption,
    LogLevelOption,
    MemoryOption,
    SetOption,
)
from ropewalk.cli.options import Output, OutputOption, chosen_output
from ropewalk.cli.output import print_json, print_table

if TYPE_CHECKING:
    from ropewalk.metadata.settings.setting import Setting

app = new_app("Settings: what a node would take from here, and what there is to set.")


@app.command("show")
@guarded
def show(
    ctx: typer.Context,
    origin: Annotated[bool, typer.Option("--origin", help="Show where each value comes from.")] = False,
    changed: Annotated[bool, typer.Option("--changed", help="Only what differs from the default.")] = False,
    config: ConfigOption = None,
    kafka: KafkaOption = None,
    data: DataOption = None,
    memory: MemoryOption = False,
    settings: SetOption = None,
    log_level: LogLevelOption = None,
    output: OutputOption = None,
) -> None:
    """Show the settings that `up` or `serve`, started here with the same options, would have."""
    from ropewalk.node.config import load
    from ropewalk.node.options import NodeOptions

    options = NodeOptions(
        kafka=kafka,
        data=data,
        memory=memory,
        config=config,
        settings=tuple(settings or ()),
        log_level=log_level,
    )
    entries = [
        (name, configured)
        for name, configured in load(options, os.environ).entries()
        if not changed or configured.origin != "default"
    ]
    if chosen_output(ctx, output) is Output.JSON:
        print_json(
            {
                name: {"value": configured.shown(name), "origin": configured.origin}
                if origin
                else configured.shown(name)
                for name, configured in entries
            }
        )
    elif origin:
        rows = [(name, configured.shown(name), configured.origin) for name, configured in entries]
        print_table(("SETTING", "VALUE", "ORIGIN"), rows)
    else:
        print_table(("SETTING", "VALUE"), [(name, configured.shown(name)) for name, configured in entries])


@app.command("describe")
@guarded
def describe(
    ctx: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="SETTING", help="One setting, or all whose name holds it.")
    ] = None,
    output: OutputOption = None,
) -> None:
    """Explain settings: of nodes and brokers, and of topics."""
    from ropewalk.metadata.settings.broker import BROKER_SETTINGS
    from ropewalk.metadata.settings.topic import TOPIC_SETTINGS
    from ropewalk.node.settings import NODE_SETTINGS

    catalogues = (("node", NODE_SETTINGS), ("topic", TOPIC_SETTINGS), ("broker", BROKER_SETTINGS))
    known = [(scope, setting) for scope, catalogue in catalogues for setting in catalogue.values()]
    chosen = [entry for entry in known if entry[1].name == name] or [
        entry for entry in known if name is None or name in entry[1].name
    ]
    if not chosen:
        raise Failed(f"no setting has {name!r} in its name; `ropewalk config describe` lists them all")
    if chosen_output(ctx, output) is Output.JSON:
        print_json([_described(scope, setting) for scope, setting in chosen])
    elif name is None:
        rows = [
            (scope, setting.name, setting.kind.name.lower(), setting.default) for scope, setting in chosen
        ]
        print_table(("SCOPE", "SETTING", "TYPE", "DEFAULT"), rows)
    else:
        print("\n\n".join(_explained(scope, setting) for scope, setting in chosen))


def _described(scope: str, setting: "Setting") -> dict[str, object]:
    return {
        "scope": scope,
        "name": setting.name,
        "type": setting.kind.name.lower(),
        "default": setting.default,
        "minimum": setting.minimum,
        "maximum": setting.maximum,
        "choices": setting.choices,
        "change": setting.change.value,
        "documentation": setting.description,
    }


def _explained(scope: str, setting: "Setting") -> str:
    bounds = [
        f"at least {setting.minimum}" if setting.minimum is not None else "",
        f"at most {setting.maximum}" if setting.maximum is not None else "",
        f"one of {', '.join(setting.choices)}" if setting.choices else "",
    ]
    facts = ", ".join([setting.kind.name.lower(), *filter(None, bounds)])
    return "\n".join(
        (
            f"{setting.name}  ({scope} setting)",
            f"  {setting.description}",
            f"  {facts}; default {setting.default if setting.default is not None else 'none'}; {setting.change.value}",
        )
    )
