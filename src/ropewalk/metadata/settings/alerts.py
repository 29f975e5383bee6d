"""Broker settings about alerts that nodes look for by themselves.

Set them for all brokers: each node tells of its own alerts, and any of them may come to tell of the cluster's.
"""

from collections.abc import Mapping
from typing import Final

from ropewalk.metadata.settings.setting import Kind, Setting

SILENCES: Final = "alerts.silences"
SILENCE_PATTERN: Final = r"[A-Za-z]+(:[a-z_]+=[A-Za-z0-9%._~-]*)*@[0-9]{13}"
"""Of one item; what it means is in alerts/silences.py."""

_CATALOGUE: Final = (
    Setting(
        "alerts.webhook",
        Kind.STRING,
        None,
        "Where nodes tell, by a POST with JSON that is signed as Standard Webhooks has it, that an alert fires and that it is over. Unless set, nowhere. "
        "It takes a secret in alerts.webhook.secret.file of each node.",
        pattern=r"https?://[^\s/?#@]+(/[^\s#]*)?",
    ),
    Setting(
        SILENCES,
        Kind.LIST,
        "",
        "Alerts that nobody is told of until a time, as NAME@MILLISECONDS or NAME:label=value@MILLISECONDS each; `ropewalk alerts silence` writes them.",
        pattern=SILENCE_PATTERN,
    ),
)

ALERT_SETTINGS: Final[Mapping[str, Setting]] = {setting.name: setting for setting in _CATALOGUE}
