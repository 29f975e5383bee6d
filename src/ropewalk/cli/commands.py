"""Which commands there are, and where. A command's module is imported when it is called or listed."""

from importlib import import_module
from typing import Final, cast

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from ropewalk.cli.options import PROFILE, PROPERTY

COMMANDS: Final = {
    "up": "ropewalk.cli.up",
    "serve": "ropewalk.cli.serve",
    "topic": "ropewalk.cli.topic",
    "produce": "ropewalk.cli.produce",
    "consume": "ropewalk.cli.consume",
    "queue": "ropewalk.cli.queue",
    "group": "ropewalk.cli.group",
    "txn": "ropewalk.cli.txn",
    "quota": "ropewalk.cli.quota",
    "acl": "ropewalk.cli.acl",
    "user": "ropewalk.cli.user",
    "pipeline": "ropewalk.cli.pipeline",
    "cluster": "ropewalk.cli.cluster",
    "alerts": "ropewalk.cli.alerts",
    "audit": "ropewalk.cli.audit",
    "bench": "ropewalk.cli.bench",
    "top": "ropewalk.cli.top",
    "config": "ropewalk.cli.config",
    "doctor": "ropewalk.cli.doctor",
    "debug": "ropewalk.cli.debug",
    "generate": "ropewalk.cli.generate",
    "docs": "ropewalk.cli.docs",
}
"""In the order of the help page. Each module has an `app`."""


class Commands(TyperGroup):
    """The root group: its commands are found in the table above."""

    def list_commands(self, _ctx: object) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _ctx: object, cmd_name: str) -> TyperCommand | TyperGroup | None:
        if cmd_name not in COMMANDS:
            return None
        # Typer builds one of its own two kinds; what it says it returns is private to it.
        command = cast(
            "TyperCommand | TyperGroup", typer.main.get_command(import_module(COMMANDS[cmd_name]).app)
        )
        command.name = cmd_name
        _add_options(command)
        return command


def _add_options(command: TyperCommand | TyperGroup) -> None:
    """Whatever connects can be told how, behind the command as well as before it."""
    if isinstance(command, TyperGroup):
        for each in command.commands.values():
            _add_options(cast("TyperCommand | TyperGroup", each))
        return
    names = {parameter.name for parameter in command.params}
    if "bootstrap" not in names:
        return
    added = [PROFILE] if "properties" in names else [PROFILE, PROPERTY]
    for flag, metavar, help_text, remember in added:
        option = TyperOption(
            param_decls=[flag],
            metavar=metavar,
            help=help_text,
            callback=remember,
            multiple=flag == "-X",
            expose_value=False,
        )
        command.params.append(option)


def new_app(documentation: str | None = None) -> typer.Typer:
    """An app with the house's manners: plain help, since rich would cost a third of the start-up time."""
    return typer.Typer(
        help=documentation,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=documentation is not None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
