"""`ropewalk docs`: the documentation of this version, without a network."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ropewalk.cli.commands import new_app
from ropewalk.cli.failure import Failed, guarded
from ropewalk.cli.options import Output, OutputOption, chosen_output
from ropewalk.cli.output import is_terminal, print_json, print_table

if TYPE_CHECKING:
    from ropewalk.views.manual import Found

_LINE_CHARACTERS_MAX = 120

app = new_app()


def _complete(incomplete: str) -> list[str]:
    from ropewalk.views.manual import pages

    return [page.name for page in pages() if incomplete in page.name]


@app.command(epilog="Example: ropewalk docs operating/running-a-node#the-disk")
@guarded
def docs(
    ctx: typer.Context,
    page: Annotated[
        str | None,
        typer.Argument(
            metavar="[PAGE[#SECTION]]", help="As operating/tls or just tls.", autocompletion=_complete
        ),
    ] = None,
    search: Annotated[
        str | None, typer.Option("--search", metavar="TEXT", help="Where a text occurs, whatever the case.")
    ] = None,
    output: OutputOption = None,
) -> None:
    """Show a page of the documentation that belongs to this version, one section of it, or which pages there are."""
    from ropewalk.views import manual

    if page is not None and search is not None:
        raise typer.BadParameter("name a page or a text, not both", param_hint="--search")
    as_json = chosen_output(ctx, output) is Output.JSON
    if search is not None:
        _show_found(manual.search(search), search, as_json=as_json)
        return
    if page is None:
        if as_json:
            print_json(manual.pages())
        else:
            print_table(("PAGE", "TITLE"), [(each.name, each.title) for each in manual.pages()])
        return
    name, _, section = page.partition("#")
    chosen = manual.page_named(name)
    text = manual.text_of(chosen, section)
    if as_json:
        print_json({"page": chosen.name, "title": chosen.title, "text": text})
    elif is_terminal():
        _render(text)
    else:
        sys.stdout.write(text)


def _show_found(found: "list[Found]", text: str, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    if not found:
        raise Failed(f"no page says {text!r}")
    print_table(
        ("PAGE", "LINE"),
        [(f"{each.page}#{each.heading}", each.line[:_LINE_CHARACTERS_MAX]) for each in found],
    )


def _render(text: str) -> None:
    from rich.console import Console
    from rich.markdown import Markdown

    Console(width=min(Console().width, _LINE_CHARACTERS_MAX)).print(Markdown(text, hyperlinks=False))
