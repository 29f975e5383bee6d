"""Take secrets out of text that is to be shown to somebody: what is said to be one, and what looks like one.

What a reader could get wrong
    It is the last line of defence and no excuse: what keeps a secret says so itself (`Kind.PASSWORD`, `Secret`), and does not show it.
    It hides too much rather than too little. A name that ends in `.file` or `.location` names a file, and stays.
"""

import re
from collections.abc import Iterable
from typing import Final

HIDDEN: Final = "(hidden)"
_KNOWN_CHARACTERS_MIN: Final = 4
"""What is shorter stands in half of all words."""

_NAMED: Final = re.compile(
    r"""(?ix)
    (
      ["']? \b [\w.-]*
      (?: password | passwd | secret | secret[_.-]?key | access[_.-]?key | api[_.-]?key | private[_.-]?key | token | credential | jaas[._]config )
      (?: [._]previous )? ["']?
      \s* (?: = | : ) \s*
    )
    ( "(?:[^"\\]|\\.)*" | '[^']*' | [^\s,;}\]"']+ )
    """
)
_PATTERNS: Final = (
    (
        re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S),
        HIDDEN,
    ),
    (re.compile(r"(?i)\b(authorization[\"']?\s*[:=]\s*[\"']?)[^\r\n\"']+"), rf"\1{HIDDEN}"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{6,}"), rf"\1 {HIDDEN}"),
    (re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*"), HIDDEN),
    (re.compile(r"\bwhs(?:ec|k)_[\w+/=-]+"), HIDDEN),
    (re.compile(r"(?i)(webhook[\"']?\s*[=:]\s*[\"']?https?://[^/\s\"']+)/[^\s\"',}]+"), rf"\1/{HIDDEN}"),
    (re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^\s/@\"']+@"), rf"\1{HIDDEN}@"),
)


def hide(text: str, known: Iterable[str] = ()) -> str:
    """`known` are secrets that whoever asks has himself.

    >>> hide("sasl.password=rope and ssl.key.password.file=/etc/key")
    'sasl.password=(hidden) and ssl.key.password.file=/etc/key'
    """
    for secret in sorted(
        {each for each in known if len(each) >= _KNOWN_CHARACTERS_MIN}, key=len, reverse=True
    ):
        text = text.replace(secret, HIDDEN)
    for pattern, instead in _PATTERNS:
        text = pattern.sub(instead, text)
    return _NAMED.sub(_without_value, text)


def _without_value(found: re.Match[str]) -> str:
    value = found[2]
    quote = value[0] if value[0] in "\"'" else ""
    return found[0] if value in ('""', "''") else f"{found[1]}{quote}{HIDDEN}{quote}"
