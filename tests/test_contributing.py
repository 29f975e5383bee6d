"""What CONTRIBUTING says of adding things is so: the files are there, and an API that is added as written is served and documented."""

import filecmp
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_tidy import first_sentences, names, orphans

ROOT = Path(__file__).parent.parent
RECIPES: dict[str, str] = dict(
    re.findall(r"^### (.+?)\n(.*?)(?=^##)", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL | re.MULTILINE)
)
PATH = re.compile(r"`((?:[\w.]+/)+[\w.]*|[\w]+\.(?:md|toml))`")

LIKE = {
    "src/ropewalk/wire/messages/NAME.py": "heartbeat",
    "src/ropewalk/kafka/handlers/NAME.py": "heartbeat",
    "src/ropewalk/cli/NAME.py": "topic",
    "src/ropewalk/wire/peer/NAME.py": "hurry_fetch",
    "src/ropewalk/kafka/peer/handlers/NAME.py": "hurry_fetch",
    "src/ropewalk/broker/peers/calls/NAME.py": "hurry_fetch",
}
"""Something that was added in that way."""

MESSAGE = '''"""Echo (key 4321): says what it was told.

v1  a count
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int16, Int32, Message, since


class EchoRequest(Message, frozen=True):
    text: str
    count: Annotated[Int32, since(1)] = 1


class EchoResponse(Message, frozen=True):
    error_code: Int16
    text: str


API: Final = Api(
    key=4321,
    name="Echo",
    versions=range(0, 1 + 1),
    flexible_since=1,
    request=EchoRequest,
    response=EchoResponse,
)
'''

HANDLER = '''"""Echo: says what it was told, with the id of the cluster."""

from ropewalk.kafka.caller import Caller
from ropewalk.metadata.image import Image
from ropewalk.wire.messages.echo import EchoRequest, EchoResponse


async def handle(request: EchoRequest, caller: Caller, *, image: Image) -> EchoResponse:
    del caller
    return EchoResponse(0, f"{image.cluster_id}: {request.text * request.count}")
'''

ASK = """
import asyncio
import json

from ropewalk.client.connections.address import parse_addresses
from ropewalk.client.connections.connection import Connection
from ropewalk.runtime.clock import SystemClock
from ropewalk.runtime.network import TcpNetwork
from ropewalk.testing import AsyncCluster
from ropewalk.wire.messages import echo


async def ask() -> dict[str, object]:
    clock = SystemClock()
    async with AsyncCluster() as cluster:
        (address,) = parse_addresses(cluster.bootstrap)
        connection = await Connection.open(
            TcpNetwork(), clock, address, client_id="newcomer", deadline_ms=clock.monotonic_ms() + 10_000
        )
        answer = await connection.call(
            echo.API, echo.EchoRequest("hey", 2), deadline_ms=clock.monotonic_ms() + 10_000
        )
        connection.close()
        return {"version": connection.versions.choose(echo.API), "text": answer.text}


print(json.dumps(asyncio.run(ask())))
"""


def paths(recipe: str) -> list[str]:
    return PATH.findall(RECIPES[recipe])


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_has_five_steps_and_names_files_that_exist(recipe: str) -> None:
    assert re.findall(r"^(\d)\. ", RECIPES[recipe], re.MULTILINE) == list("12345")
    assert paths(recipe)
    for path in paths(recipe):
        assert (ROOT / path.replace("NAME", LIKE.get(path, ""))).exists(), path


def test_there_are_recipes_for_all_that_is_added() -> None:
    assert list(RECIPES) == [
        "A Kafka API",
        "A setting",
        "A metric",
        "A command",
        "A state machine",
        "A door",
        "A peer call",
    ]


def test_an_api_that_is_added_as_written_is_served_and_documented(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for folder in ("src", "tools", "docs/reference"):
        shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tree)
    message, handler, apis, *_ = (path.replace("NAME", "echo") for path in paths("A Kafka API"))
    (tree / message).write_text(MESSAGE)
    (tree / handler).write_text(HANDLER)
    list_in_the_table(tree / apis)
    run(tree, "tools/write_reference.py")
    assert changed(tree) == {message, handler, apis, "docs/reference/apis.md"}
    assert changed(tree) <= {path.replace("NAME", "echo") for path in paths("A Kafka API")}
    row = "| 4321 | Echo | 0–1 | Says what it was told, with the id of the cluster. |"
    assert row in (tree / "docs/reference/apis.md").read_text()
    assert [rule(tree) for rule in (first_sentences, names, orphans)] == [[], [], []]
    script = tmp_path / "ask.py"
    script.write_text(ASK)
    answer = json.loads(run(tree, script))
    assert answer["version"] == 1
    assert answer["text"].endswith(": heyhey")


def list_in_the_table(apis: Path) -> None:
    text = apis.read_text()
    for before, added in (
        ("    elect_leaders,\n", "    echo,\n"),
        (
            "from ropewalk.wire.messages.elect_leaders",
            "from ropewalk.wire.messages.echo import API as ECHO\n",
        ),
        (
            "    Serving(ELECT_LEADERS, ",
            '    Serving(ECHO, Nothing("it tells what it was told")),\n',
        ),
        ("        ELECT_LEADERS.key:", "        ECHO.key: partial(echo.handle, image=image),\n"),
    ):
        assert text.count(before) == 1, before
        text = text.replace(before, added + before)
    apis.write_text(text)


def changed(tree: Path) -> set[str]:
    return {
        str(path.relative_to(tree))
        for path in tree.rglob("*.*")
        if path.is_file() and "__pycache__" not in path.parts
        if not (ROOT / path.relative_to(tree)).exists()
        or not filecmp.cmp(path, ROOT / path.relative_to(tree), shallow=False)
    }


def run(tree: Path, script: str | Path) -> str:
    done = subprocess.run(
        [sys.executable, script],
        cwd=tree,
        env={"PYTHONPATH": str(tree / "src"), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
