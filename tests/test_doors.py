"""No door reaches what a node has except through its admission: every handler stands in a table that says what it needs, and only what asks calls it.

Which modules may import handlers at all is a contract of its own (`pyproject.toml`).
"""

import ast
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import ropewalk
from ropewalk.kafka.apis import SERVED
from ropewalk.kafka.rights import needs as kafka_needs
from ropewalk.kafka.rights.needs import Inside, OnCluster
from ropewalk.metadata.settings.rights import STANDARD_AUTHORIZER
from ropewalk.node.kafka_door import serve_here
from tests.kafka.door import Door, at_the_door

PACKAGE: Final = Path(ropewalk.__file__).parent
ON: Final = f"authorizer.class.name={STANDARD_AUTHORIZER}"
LISTENERS: Final = frozenset({"HttpListener", "KafkaListener"})


def using(room: str, name: str, *, of: str = "") -> set[str]:
    """Files of a room in which an attribute of that name is read: of anything, or of what is called so."""
    return {
        path.relative_to(PACKAGE).as_posix()
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Load)
        if not of or (isinstance(node.value, ast.Name) and node.value.id == of)
    }


def starting() -> Iterator[tuple[str, str]]:
    """Where listeners are started, and of what kind."""
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text()
        if not any(f"{each}.start" in text for each in LISTENERS):
            continue
        for node in ast.walk(ast.parse(text)):
            if not (isinstance(node, ast.Attribute) and node.attr in ("start", "start_all")):
                continue
            if isinstance(node.value, ast.Name) and node.value.id in LISTENERS:
                yield path.relative_to(PACKAGE).as_posix(), node.value.id


def test_listeners_for_clients_are_started_by_the_doors_of_a_node_and_by_nobody_else() -> None:
    assert set(starting()) == {
        ("node/http_door.py", "HttpListener"),
        ("node/kafka_door.py", "KafkaListener"),
        ("node/sqs_door.py", "HttpListener"),
    }


def test_an_action_is_carried_out_by_the_admission_alone() -> None:
    assert using("sqs", "handle", of="action") == {"sqs/admission.py"}
    assert using("sqs", "handle") - {"sqs/actions.py", "sqs/admission.py"} == {"sqs/receiving.py"}, (
        "it makes receipts"
    )


def test_what_an_engine_has_is_touched_by_handlers_with_the_desk_that_they_are_given() -> None:
    touching = {name for name in using("sqs", "engine") if not name.startswith("sqs/handlers/")}
    assert touching == {"sqs/admission.py", "sqs/desk.py", "sqs/peeking.py"}
    assert "sqs/routes.py" not in using("sqs", "desk")


def test_a_page_is_called_by_its_doorway_alone() -> None:
    assert using("http", "page", of="route") == using("http", "needs", of="route") == {"http/routes.py"}
    assert using("node", "page", of="route") == set()


def test_what_stands_before_every_handler_is_what_its_entry_says() -> None:
    async def story(door: Door) -> None:
        served = serve_here(door.node._parts)
        assert served.keys() == {each.api.key for each in SERVED}
        for each in SERVED:
            handle = served[each.api.key].handle
            match each.needs:
                case OnCluster():
                    assert isinstance(handle, partial), each.api
                    assert handle.func is kafka_needs._on_cluster, each.api
                    assert handle.args[0] is each.needs, each.api
                case Inside(guard=guard) if guard is not None:
                    assert isinstance(handle, partial), each.api
                    assert handle.func is kafka_needs._guarded, each.api
                    assert handle.args[0] is guard, each.api
                case Inside():
                    assert each.api.name in INSIDE, f"{each.api.name} has no guard: say who decides"

    at_the_door(story, ON)


INSIDE: Final = ("Fetch",)
"""Whose handlers decide themselves."""
