"""The assignors by the names that clients use."""

from typing import Final

from ropewalk.groups.assignors.model import Assignor
from ropewalk.groups.assignors.range import assign_range
from ropewalk.groups.assignors.sticky import assign_sticky
from ropewalk.groups.assignors.uniform import assign_uniform

ASSIGNORS: Final[dict[str, Assignor]] = {
    "uniform": assign_uniform,
    "range": assign_range,
    "sticky": assign_sticky,
}

DEFAULT_ASSIGNOR: Final = "uniform"
"""For groups whose members ask for none, unless the settings say otherwise."""
