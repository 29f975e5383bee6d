"""Which alerts nobody wants to be told of, and until when: items of the setting `alerts.silences`.

    RopewalkLag@1795057200000                            the rule, everywhere
    RopewalkLag:consumergroup=billing@1795057200000      only where labels have these values, percent-encoded

What a reader could get wrong
    A silenced alert is looked at and shown as any other. Nobody is told of it; if it still fires when the silence ends, then somebody is.
    A silence whose time is over stays in the setting until somebody takes it away, and does nothing.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote, unquote

from msgspec import Struct

_PARTS: Final = re.compile(r"([A-Za-z]+)((?::[a-z_]+=[A-Za-z0-9%._~-]*)*)@([0-9]{13})")


class Silence(Struct, frozen=True):
    rule: str
    where: tuple[tuple[str, str], ...]
    until_ms: int
    """By the wall clock."""

    @property
    def written(self) -> str:
        where = "".join(f":{name}={quote(value, safe='')}" for name, value in self.where)
        return f"{self.rule}{where}@{self.until_ms:013d}"

    def covers(self, rule: str, labels: Mapping[str, str], now_ms: int) -> bool:
        return (
            rule == self.rule
            and now_ms < self.until_ms
            and all(labels.get(name) == value for name, value in self.where)
        )


def parse_silence(item: str) -> Silence:
    """Raises `ValueError` for what is none."""
    match = _PARTS.fullmatch(item)
    if match is None:
        raise ValueError(
            f"{item!r} is no silence, which looks like RopewalkLag:consumergroup=billing@1795057200000"
        )
    pairs = (each.partition("=") for each in match[2].split(":")[1:])
    return Silence(match[1], tuple((name, unquote(value)) for name, _, value in pairs), int(match[3]))


def silenced_until_ms(
    silences: Iterable[Silence], rule: str, labels: Mapping[str, str], now_ms: int
) -> int | None:
    """The latest end of those that cover an alert; None where none does."""
    return max((each.until_ms for each in silences if each.covers(rule, labels, now_ms)), default=None)
