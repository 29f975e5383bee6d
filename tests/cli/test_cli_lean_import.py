"""What a node imports when it starts, which is most of the time it takes."""

import gc
import importlib
import subprocess
import sys

from ropewalk.cli.lean_import import lean_import

START = """
import sys
from ropewalk.cli import up
with up.lean_import():
    import ropewalk.node.main
print([name for name in ("rich", "pygments", "textual", "numpy") if name in sys.modules])
"""


def test_a_node_is_imported_without_what_only_looks_nice() -> None:
    done = subprocess.run(
        [sys.executable, "-c", START], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


def imported_or_none(name: str) -> object:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


def test_what_was_hidden_can_be_imported_afterwards() -> None:
    loaded = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "rich"}
    for name in loaded:
        del sys.modules[name]
    try:
        with lean_import():
            within = gc.isenabled(), imported_or_none("rich")
        assert within == (False, None)
        assert (gc.isenabled(), "rich" in sys.modules) == (True, False)
    finally:
        sys.modules.update(loaded)
