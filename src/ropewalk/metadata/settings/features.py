"""Broker settings about feature levels."""

from collections.abc import Mapping
from typing import Final

from ropewalk.metadata.settings.setting import Kind, Setting

FINALIZE_AUTO: Final = "auto"

_CATALOGUE: Final = (
    Setting(
        "features.finalize",
        Kind.STRING,
        FINALIZE_AUTO,
        "When a new feature level comes into force, from which on no node can go back to the version before: auto, as soon as all registered "
        "nodes know it; manual, when `ropewalk cluster upgrade finalize` is called.",
        choices=(FINALIZE_AUTO, "manual"),
        agreed=True,
    ),
)

FEATURE_SETTINGS: Final[Mapping[str, Setting]] = {setting.name: setting for setting in _CATALOGUE}
