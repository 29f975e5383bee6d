"""`ssl.principal.mapping.rules`: how the name in a certificate becomes a principal's, by rules as Kafka has them.

    RULE:^CN=(.*?),OU=Users.*$/$1/L, RULE:…/…/, DEFAULT

Behaviour worth knowing
    The first rule whose expression matches the whole name counts; DEFAULT takes the name as it is. Where none matches there is no
    principal, and the connection is refused.
    `$1` stands for a group, `\\x` for x itself; `/` within an expression is written `\\/`. L and U make lower and upper case of the outcome.
    Expressions are RE2's: what Java has beyond that (looking around, referring back) is refused when the node starts.

What a reader could get wrong
    The name has escapes. `^.*CN=([^,]*).*$` also matches within the value of another part, as in `O=x\\,CN=admin`: whoever may choose an
    organisation's name would choose a principal's. `ssl.principal.from` takes names from where they are, without an expression.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from ropewalk.base.errors import InvalidSetting
from ropewalk.base.patterns import compile_groups

SETTING: Final = "ssl.principal.mapping.rules"

_RULE: Final = re.compile(
    r"\s*(?:(?P<default>DEFAULT)|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/(?P<case>[LU]?))\s*(?P<end>,|$)"
)
_PIECE: Final = re.compile(r"\\(?P<literal>.)|\$(?P<group>[0-9]+)|(?P<wrong>[\\$])|(?P<text>[^\\$]+)")


class Rule(Struct, frozen=True):
    match: Callable[[str], tuple[str, ...] | None]
    """The groups of a name that matches as a whole, itself first."""

    replacement: str
    case: str


class PrincipalRules:
    def __init__(self, text: str) -> None:
        """Raises `InvalidSetting`."""
        self._rules = tuple(_parsed(text))

    def apply(self, name: str) -> str | None:
        """None where no rule matches."""
        for rule in self._rules:
            groups = rule.match(name)
            if groups is not None:
                found = "".join(_expanded(rule.replacement, groups))
                return found.lower() if rule.case == "L" else found.upper() if rule.case == "U" else found
        return None


def _parsed(text: str) -> Iterator[Rule]:
    position, ends = 0, False
    while not ends:
        found = _RULE.match(text, position)
        if found is None:
            raise InvalidSetting(
                f"{SETTING}: {text[position:].strip()!r} is neither DEFAULT nor RULE:EXPRESSION/REPLACEMENT/ with L, U or nothing behind it"
            )
        yield _default() if found["default"] else _rule(found["pattern"], found["replacement"], found["case"])
        position, ends = found.end(), found["end"] == ""


def _default() -> Rule:
    return Rule(lambda name: (name, name), "$1", "")


def _rule(pattern: str, replacement: str, case: str) -> Rule:
    try:
        match = compile_groups(pattern)
    except ValueError as error:
        raise InvalidSetting(f"{SETTING}: {pattern!r} is no expression of RE2: {error}") from None
    for piece in _PIECE.finditer(replacement):
        if piece["wrong"]:
            raise InvalidSetting(
                f"{SETTING}: in {replacement!r} a group is $ and its number, and a $ itself is written \\$"
            )
    return Rule(match, replacement, case)


def _expanded(replacement: str, groups: tuple[str, ...]) -> Iterator[str]:
    """As many digits belong to a group's number as there are groups; of a group that there is none of, the text stays."""
    for piece in _PIECE.finditer(replacement):
        digits = piece["group"]
        if digits is None:
            yield piece["literal"] or piece["text"]
            continue
        taken = max(
            (count for count in range(1, len(digits) + 1) if int(digits[:count]) < len(groups)), default=0
        )
        yield f"{groups[int(digits[:taken])]}{digits[taken:]}" if taken else f"${digits}"
