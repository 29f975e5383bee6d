"""The version of this software, said once: the package, the nodes that register and the command line all mean this one."""

from typing import Final

VERSION: Final = "0.2.0.dev0"
