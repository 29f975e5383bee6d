"""Text of strangers, made such that what is seen is what is there.

Names of topics, groups and clients, keys and values may have characters in them that nobody sees, that turn a line around, or that a terminal obeys
once it is copied there. On a page these are written out, as `\\u202e`.
"""

from typing import Final
from unicodedata import category

_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_KEPT: Final = frozenset({"\n", "\t"})


def visible(text: str) -> str:
    """
    >>> visible("plain"), visible("a\\u202eb\\x1b[31m")
    ('plain', 'a\\\\u202eb\\\\x1b[31m')
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join([_written(each) if _is_unseen(each) else each for each in text])


def _is_unseen(character: str) -> bool:
    return character not in _KEPT and category(character) in _UNSEEN


def _written(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
