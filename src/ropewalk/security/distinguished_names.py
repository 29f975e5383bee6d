"""Distinguished names as Java spells them (`X500Principal.getName()`, RFC 2253): rules for ACLs are written for that spelling.

Behaviour worth knowing
    The last part comes first. Of types only those that RFC 2253 names are named; others are numbers, with `#` and the bytes of the value.
    Java escapes more than it must: `=` and `#` anywhere, and blanks at either end.
    Values in encodings that are seldom met (BMPString, UniversalString) are given as bytes, where Java takes them for UTF-8.
"""

from collections.abc import Iterator
from typing import Final

_SEQUENCE: Final = 0x30
_SET: Final = 0x31
_OBJECT_IDENTIFIER: Final = 0x06
_AS_UTF_8: Final = frozenset({0x0C, 0x13, 0x16, 0x1B})
"""UTF8String, PrintableString, IA5String, GeneralString."""

_AS_LATIN_1: Final = frozenset({0x14})
"""T61String, of which nobody uses more."""

_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_ESCAPED: Final = ',=+<>#;"\\'
_BLANK: Final = " \r"


def spelled(name: bytes) -> str:
    """`name` is an X.501 Name in DER. Raises `ValueError` for bytes that are none."""
    (content,) = (body for _, body, _ in _elements(name, _SEQUENCE))
    parts = [_part(body) for _, body, _ in _elements(content, _SET)]
    return ",".join(reversed(parts))


def _part(body: bytes) -> str:
    return "+".join(_attribute(each) for _, each, _ in _elements(body, _SEQUENCE))


def _attribute(body: bytes) -> str:
    (_, number, _), (tag, value, whole) = _elements(body)
    identifier = _identifier(number)
    keyword = _KEYWORDS.get(identifier)
    if keyword is None or tag not in _AS_UTF_8 | _AS_LATIN_1:
        return f"{keyword or identifier}=#{whole.hex()}"
    return f"{keyword}={_escaped(value.decode('latin-1' if tag in _AS_LATIN_1 else 'utf-8'))}"


def _escaped(value: str) -> str:
    lead = len(value) - len(value.lstrip(_BLANK))
    trail = len(value.rstrip(_BLANK))
    return "".join(
        "\\00"
        if character == "\0"
        else f"\\{character}"
        if character in _ESCAPED or not lead <= index < trail
        else character
        for index, character in enumerate(value)
    )


def _identifier(content: bytes) -> str:
    numbers: list[int] = []
    number = 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    if not numbers or content[-1] & 0x80:
        raise ValueError("an object identifier that does not end")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _elements(data: bytes, expected: int | None = None) -> Iterator[tuple[int, bytes, bytes]]:
    """Tag, content and the whole of each element, one after the other."""
    position = 0
    while position < len(data):
        start = position
        tag, size = data[position], data[position + 1] if position + 1 < len(data) else 0x80
        position += 2
        if size & 0x80:
            size_bytes = size & 0x7F
            if not 0 < size_bytes <= 4 or position + size_bytes > len(data):
                raise ValueError("a length that is no length in DER")
            size = int.from_bytes(data[position : position + size_bytes], "big")
            position += size_bytes
        end = position + size
        if end > len(data) or (expected is not None and tag != expected):
            raise ValueError(f"an element of tag {tag:#x} and {size} bytes that does not belong there")
        yield tag, data[position:end], data[start:end]
        position = end
