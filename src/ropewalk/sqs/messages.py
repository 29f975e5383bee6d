"""What a message may be: its body, its attributes, its ids, and how large it is.

What a reader could get wrong
    Counted are the bytes of the body and of the attributes' names, types and values; what SQS adds is not.
    What XML cannot say is looked for in the bytes, which costs a quarter of asking every character whether it is printable.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Final

from msgspec import Struct

from ropewalk.sqs.errors import (
    INVALID_MESSAGE_CONTENTS,
    INVALID_PARAMETER_VALUE,
    SqsRefusal,
    invalid,
)
from ropewalk.sqs.shapes import Flat

ATTRIBUTES_MAX: Final = 10
ATTRIBUTE_NAME_CHARACTERS_MAX: Final = 256
ID_CHARACTERS_MAX: Final = 128
TRACE_HEADER: Final = "AWSTraceHeader"

FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_WITHOUT_CONTROLS: Final = bytes(
    0xFF if each < 0x20 and each not in b"\t\n\r" else each for each in range(256)
)
"""Leaves text as it is: 0xFF does not occur in UTF-8."""
_NO_CHARACTERS: Final = ("\ufffe".encode(), "\uffff".encode())
_ATTRIBUTE_NAME: Final = re.compile(r"[A-Za-z0-9_.-]+")
_ID: Final = re.compile(r"[A-Za-z0-9!-/:-@\[-`{-~]{1,128}")
_SIMPLE_TYPES: Final = frozenset({"String", "Number", "Binary"})
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")


class AttributeValue(Struct, frozen=True, rename="pascal", omit_defaults=True):
    """Of a message, in requests and answers. Lists exist in the protocol; SQS does not take them."""

    string_value: str | None = None
    binary_value: bytes | None = None
    string_list_values: Annotated[tuple[str, ...] | None, Flat("StringListValue")] = None
    binary_list_values: Annotated[tuple[bytes, ...] | None, Flat("BinaryListValue")] = None
    data_type: str = ""


AttributeValues = Mapping[str, AttributeValue]


def is_text(text: str) -> bool:
    """Whether every character of it may be in a message."""
    try:
        return is_text_in_utf8(text.encode())
    except UnicodeEncodeError:  # half of a pair of surrogates
        return False


def is_text_in_utf8(content: bytes) -> bool:
    """The same of a text's bytes."""
    if content.translate(_WITHOUT_CONTROLS) != content:
        return False
    return content.isascii() or not (_NO_CHARACTERS[0] in content or _NO_CHARACTERS[1] in content)


def check_body(body: str) -> bytes:
    """The body in UTF-8. Raises `SqsRefusal`."""
    try:
        content = body.encode()
    except UnicodeEncodeError:
        raise SqsRefusal(INVALID_MESSAGE_CONTENTS) from None
    if not is_text_in_utf8(content):
        raise SqsRefusal(INVALID_MESSAGE_CONTENTS)
    return content


def check_id(parameter: str, value: str) -> str:
    """A group or deduplication id. Raises `SqsRefusal`."""
    if len(value) > ID_CHARACTERS_MAX or _ID.fullmatch(value) is None:
        raise invalid(
            parameter,
            value,
            f"{parameter} can only include alphanumeric and punctuation characters. 1 to 128 in length.",
        )
    return value


def check_attributes(attributes: AttributeValues) -> int:
    """How many bytes they count. Raises `SqsRefusal`."""
    if len(attributes) > ATTRIBUTES_MAX:
        text = f"Number of message attributes [{len(attributes)}] exceeds the allowed maximum [{ATTRIBUTES_MAX}]."
        raise SqsRefusal(INVALID_PARAMETER_VALUE, text)
    size = 0
    for name, value in attributes.items():
        _check_attribute_name(name)
        content = _check_value(name, value, "user")
        size += len(name) + len(value.data_type.encode()) + len(content)
    return size


def check_system_attributes(attributes: AttributeValues) -> str | None:
    """The trace header, which is the only one that may be sent. Raises `SqsRefusal`."""
    trace = None
    for name, value in attributes.items():
        if name != TRACE_HEADER:
            text = f"Message system attribute name '{name}' is invalid."
            raise SqsRefusal(INVALID_PARAMETER_VALUE, text)
        _check_value(name, value, "system")
        if value.data_type != "String" or value.string_value is None:
            text = f"The type of message (system) attribute '{name}' must be 'String'."
            raise SqsRefusal(INVALID_PARAMETER_VALUE, text)
        trace = value.string_value
    return trace


def checksummed(attributes: AttributeValues) -> list[tuple[str, str, str | bytes]]:
    """As `checksums.of_attributes` wants them."""
    return [(name, value.data_type, content_of(value)) for name, value in attributes.items()]


def content_of(value: AttributeValue) -> str | bytes:
    if value.binary_value is not None:
        return value.binary_value
    return value.string_value or ""


def is_attribute_name(name: str) -> bool:
    lowered = name.lower()
    return (
        len(name) <= ATTRIBUTE_NAME_CHARACTERS_MAX
        and _ATTRIBUTE_NAME.fullmatch(name) is not None
        and not name.startswith(".")
        and not name.endswith(".")
        and ".." not in name
        and not lowered.startswith(("aws.", "amazon."))
    )


def _check_attribute_name(name: str) -> None:
    if is_attribute_name(name):
        return
    if len(name) > ATTRIBUTE_NAME_CHARACTERS_MAX:
        text = "Message (user) attribute name cannot be longer than 256 UTF-8 characters."
    elif _ATTRIBUTE_NAME.fullmatch(name) is None:
        text = (
            f"The message attribute name '{name}' is invalid. Attribute name can contain A-Z, a-z, 0-9, "
            "underscore (_), hyphen (-), and period (.) characters."
        )
    elif name.startswith("."):
        text = "Invalid message attribute name starting with character '.' was found."
    elif name.endswith("."):
        text = "Invalid message attribute name ending with character '.' was found."
    elif ".." in name:
        text = "Message attribute name can not have successive '.' characters."
    else:
        text = "You can't use message attribute names beginning with 'AWS.' or 'Amazon.'. These strings are reserved for internal use."
    raise SqsRefusal(INVALID_PARAMETER_VALUE, text)


def _check_value(name: str, value: AttributeValue, whose: str) -> bytes:
    """Its content in bytes."""
    subject = f"({whose}) attribute '{name}'"
    data_type = value.data_type
    if not data_type:
        raise _refused(f"The message {subject} must contain a non-empty message attribute type.")
    base, dot, label = data_type.partition(".")
    if base not in _SIMPLE_TYPES or len(data_type) > ATTRIBUTE_NAME_CHARACTERS_MAX or (dot and not label):
        raise _refused(
            f"The type of message {subject} is invalid. You must use only the following supported type prefixes: "
            "Binary, Number, String."
        )
    if not is_text(data_type):
        raise _refused(f"The type of message {subject} contains characters that are not allowed.")
    if value.string_list_values or value.binary_list_values:
        raise _refused(
            f"Message attribute list values in SendMessage operation are not supported: {subject}."
        )
    if base == "Binary":
        if value.string_value is not None or not value.binary_value:
            raise _empty(subject, "Binary")
        return value.binary_value
    if value.binary_value is not None or not value.string_value:
        raise _empty(subject, base)
    if base == "Number" and _NUMBER.fullmatch(value.string_value.strip()) is None:
        raise _refused(f"Can't cast the value of message {subject} to a number.")
    return check_body(value.string_value)


def _empty(subject: str, base: str) -> SqsRefusal:
    return _refused(f"Message {subject} must contain a non-empty value of type '{base}'.")


def _refused(text: str) -> SqsRefusal:
    return SqsRefusal(INVALID_PARAMETER_VALUE, text)
