"""`ropewalk debug bundle`: one archive for somebody who is to help from afar."""

import io
import os
import tarfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ropewalk import __version__
from ropewalk.cli.commands import new_app
from ropewalk.cli.failure import EXIT_FAILED, Failed, describe, guarded
from ropewalk.cli.options import (
    BootstrapOption,
    Output,
    OutputOption,
    PropertyOption,
    chosen_bootstrap,
    chosen_output,
)
from ropewalk.cli.output import counted, note, print_json, warn

if TYPE_CHECKING:
    from ropewalk.client.connections.address import Address
    from ropewalk.client.connections.settings import ClientSettings
    from ropewalk.views.diagnosis.bundling import Bundle
    from ropewalk.views.diagnosis.facts import Facts

_OWN_EYES: Final = 0o600

app = new_app("What somebody who is to help from afar wants to see.")


@app.callback()
def _group() -> None:
    """What somebody who is to help from afar wants to see."""


@app.command(epilog="Example: ropewalk debug bundle --file /tmp/cluster.tar.gz")
@guarded
def bundle(
    ctx: typer.Context,
    file: Annotated[
        Path | None,
        typer.Option("--file", help="Where to put it. [default: ropewalk-debug-TIME.tar.gz, here]"),
    ] = None,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Write journals, settings, metadata, metrics and stacks of every node that answers into one archive. No records, no secrets."""
    from ropewalk.cli.connect import addresses_from, client_settings
    from ropewalk.runtime.loop import run

    addresses = addresses_from(chosen_bootstrap(ctx, bootstrap))
    settings = client_settings(ctx, properties)
    written_at = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    path = file or Path(f"ropewalk-debug-{written_at}.tar.gz")
    if path.exists():
        raise Failed(f"{path} is there already; name another with --file")
    note("asking every node …")
    filled, facts = run(_fill(addresses, settings, written_at))
    _write(path, filled, path.name.partition(".")[0])
    for missing in filled.missing:
        warn(f"not in it: {missing}")
    if chosen_output(ctx, output) is Output.JSON:
        print_json({"file": str(path), "files": sorted(filled.files), "missing": filled.missing})
    else:
        answered = sum(each.answer is not None for each in facts.nodes)
        print(
            f"{path}: {counted(len(filled.files), 'file')}, {answered} of {counted(len(facts.nodes), 'node')}"
        )
        note("look through it before you give it away: it names topics, groups, users and machines")
    if facts.membership is None:
        raise typer.Exit(EXIT_FAILED)


async def _fill(
    addresses: "tuple[Address, ...]", settings: "ClientSettings", written_at: str
) -> "tuple[Bundle, Facts]":
    from random import SystemRandom

    from msgspec import structs

    from ropewalk.base.errors import RopewalkError
    from ropewalk.cli.checks import examine, look_at_machine
    from ropewalk.client.calls.client import Client
    from ropewalk.node.options import NodeOptions
    from ropewalk.runtime.clock import SystemClock
    from ropewalk.runtime.network import TcpNetwork
    from ropewalk.views.diagnosis.bundling import Bundle, fill
    from ropewalk.views.diagnosis.collecting import Collector
    from ropewalk.views.diagnosis.rule import findings
    from ropewalk.views.diagnosis.table import RULES

    network, clock, rng = TcpNetwork(), SystemClock(), SystemRandom()
    collector = Collector(network, clock, rng, settings, describe=describe, examine=examine)
    facts = await collector.collect(addresses)
    machine = look_at_machine(NodeOptions(), {})
    filled = Bundle(_secrets(settings))
    filled.add_json("about.json", {"ropewalk": __version__, "written_at": written_at, "asked": addresses})
    filled.add_json("doctor.json", findings(RULES, structs.replace(facts, machine=machine)))
    filled.add("machine.txt", machine.versions)
    if facts.membership is None:
        await fill(filled, facts, network, settings.security, None)
    else:
        try:
            async with Client(network, clock, rng, addresses, settings) as client:
                await fill(filled, facts, network, settings.security, client)
        except RopewalkError as error:
            filled.lacks("settings", error)
    filled.add("missing.txt", "\n".join(filled.missing))
    return filled, facts


def _secrets(settings: "ClientSettings") -> list[str]:
    from ropewalk.base.errors import InvalidSetting
    from ropewalk.client.connections.security import SECRETS

    found = []
    for name in SECRETS:
        secret = getattr(settings.security, name)
        if secret is not None:
            with suppress(InvalidSetting):  # a file that cannot be read has not been shown to anybody
                found.append(secret.reveal())
    return found


def _write(path: Path, filled: "Bundle", folder: str) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWN_EYES)
    except OSError as error:
        raise Failed(f"{path} cannot be written: {error.strerror}") from None
    with os.fdopen(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, text in filled.files.items():
            data = text.encode(errors="replace")
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size, member.mtime, member.mode = len(data), int(time.time()), _OWN_EYES
            archive.addfile(member, io.BytesIO(data))
