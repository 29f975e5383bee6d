"""The Query protocol: parameters in a form or an address, answers in XML. Both are derived from an action's declarations.

What a reader could get wrong
    The numbers in `Entry.1.Id`, `Entry.7.Id` order a list and may have gaps.
    XML 1.0 has no place for most control characters, whichever way they are written. Bodies of messages never have any; what is quoted
    in an error might, and loses them.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from types import NoneType, UnionType
from typing import Annotated, Final, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

import msgspec
from msgspec import Struct

from ropewalk.base.errors import RopewalkError
from ropewalk.base.limits import (
    SQS_FORM_DEPTH_MAX,
    SQS_FORM_FIELDS_MAX,
    SQS_FORM_NUMBER_DIGITS_MAX,
)
from ropewalk.http1.message import Answer, Request
from ropewalk.sqs.errors import (
    INVALID_PARAMETER_VALUE,
    SERIALIZATION,
    SqsRefusal,
    fault_of,
    text_of,
)
from ropewalk.sqs.json_protocol import REQUEST_ID
from ropewalk.sqs.messages import FORBIDDEN
from ropewalk.sqs.shapes import Flat, Input, Output

CONTENT_TYPE: Final = "text/xml"
FORM: Final = "application/x-www-form-urlencoded"
NAMESPACE: Final = "http://queue.amazonaws.com/doc/2012-11-05/"
VERSION: Final = "2012-11-05"

Q = TypeVar("Q", bound=Input)

Tree: TypeAlias = dict[str, "str | Tree"]
_Value: TypeAlias = "str | list[_Value] | dict[str, _Value]"
_Read: TypeAlias = Callable[["str | Tree"], _Value]
_Write: TypeAlias = Callable[[object, list[str]], None]

_NO_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def parameters(request: Request) -> dict[str, str]:
    """Those of the address and those of the form. Raises `SqsRefusal` where they are no such thing."""
    _, _, query = request.target.partition("?")
    try:
        fields = parse_qsl(
            query,
            keep_blank_values=True,
            encoding="utf-8",
            errors="strict",
            max_num_fields=SQS_FORM_FIELDS_MAX,
        )
        if request.method == "POST":
            fields += parse_qsl(
                request.body.decode("utf-8"),
                keep_blank_values=True,
                encoding="utf-8",
                errors="strict",
                max_num_fields=SQS_FORM_FIELDS_MAX,
            )
    except ValueError:  # of decoding, too
        raise SqsRefusal(SERIALIZATION, "the parameters are no form in UTF-8, or too many") from None
    return dict(fields)


def decoder_of(shape: type[Q]) -> Callable[[Mapping[str, str]], Q]:
    """Raises `SqsRefusal` where parameters are not what the action takes. Those that it does not know are passed over."""
    read = _structure_reader(shape)

    def decode(fields: Mapping[str, str]) -> Q:
        try:
            return msgspec.convert(read(_tree(fields)), shape, strict=False)
        except msgspec.ValidationError as error:
            raise SqsRefusal(INVALID_PARAMETER_VALUE, str(error)) from None

    return decode


def encoder_of(action: str, shape: type[Output]) -> Callable[[Output, str], bytes]:
    """Of an answer, with the request's id."""
    write = _structure_writer(shape)

    def encode(output: Output, request_id: str) -> bytes:
        parts = [f'<?xml version="1.0"?><{action}Response xmlns="{NAMESPACE}">']
        if shape.__struct_fields__:
            parts.append(f"<{action}Result>")
            write(output, parts)
            parts.append(f"</{action}Result>")
        parts.append(
            f"<ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata></{action}Response>"
        )
        return "".join(parts).encode()

    return encode


def answer(document: bytes, request_id: str) -> Answer:
    return Answer(HTTPStatus.OK, (document,), CONTENT_TYPE, ((REQUEST_ID, request_id),))


def refuse(error: RopewalkError, request_id: str) -> Answer:
    fault = fault_of(error)
    text = _NO_XML.sub("\ufffd", text_of(error, fault, is_query=True))
    document = (
        f'<?xml version="1.0"?><ErrorResponse xmlns="{NAMESPACE}"><Error>'
        f"<Type>{'Sender' if fault.is_senders else 'Receiver'}</Type><Code>{fault.query_code}</Code>"
        f"<Message>{_escape(text)}</Message><Detail/></Error><RequestId>{request_id}</RequestId></ErrorResponse>"
    )
    return Answer(fault.status, (document.encode(),), CONTENT_TYPE, ((REQUEST_ID, request_id),))


# Reading


def _tree(fields: Mapping[str, str]) -> Tree:
    """`A.1.B=c` as a tree of names. Where a name is both a value and a branch, the later one counts."""
    root: Tree = {}
    for name, value in fields.items():
        *branches, leaf = name.split(".", SQS_FORM_DEPTH_MAX)
        node = root
        for branch in branches:
            below = node.get(branch)
            if not isinstance(below, dict):
                below = node[branch] = {}
            node = below
        node[leaf] = value
    return root


def _structure_reader(shape: type[Struct]) -> Callable[[Tree], dict[str, _Value]]:
    plan = [
        (name, flat.element if flat else name, _reader(kind, flat)) for name, kind, flat in _fields(shape)
    ]

    def read(tree: Tree) -> dict[str, _Value]:
        return {name: reader(tree[key]) for name, key, reader in plan if key in tree}

    return read


def _reader(kind: object, flat: Flat | None) -> _Read:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (list, tuple):
        return partial(_read_list, _reader(arguments[0], None))
    if origin in (dict, Mapping):
        assert flat is not None, "a map has names in the Query protocol"
        return partial(_read_map, flat, _reader(arguments[1], None))
    if isinstance(kind, type) and issubclass(kind, Struct):
        read = _structure_reader(kind)
        return lambda node: read(node) if isinstance(node, dict) else node
    return lambda node: "" if isinstance(node, dict) else node


def _read_list(read: _Read, node: "str | Tree") -> _Value:
    return [read(item) for item in _numbered(node)]


def _read_map(flat: Flat, read: _Read, node: "str | Tree") -> _Value:
    found: dict[str, _Value] = {}
    for item in _numbered(node):
        if not isinstance(item, dict) or not isinstance(key := item.get(flat.key), str):
            raise SqsRefusal(INVALID_PARAMETER_VALUE, f"{flat.element} has an entry without a {flat.key}")
        found[key] = read(item.get(flat.value, ""))
    return found


def _numbered(node: "str | Tree") -> Iterator["str | Tree"]:
    if isinstance(node, str):
        if node:
            yield node  # one that is not numbered, as some clients write it
        return
    for number in node:
        if not number.isascii() or not number.isdecimal() or len(number) > SQS_FORM_NUMBER_DIGITS_MAX:
            raise SqsRefusal(INVALID_PARAMETER_VALUE, f"{number[:80]!r} is no place in a list")
    for number in sorted(node, key=int):
        yield node[number]


# Writing


def _structure_writer(shape: type[Struct]) -> _Write:
    plan = []
    defaults = shape.__struct_defaults__
    required_count = len(shape.__struct_fields__) - len(defaults)
    for position, (name, kind, flat) in enumerate(_fields(shape)):
        default = None if position < required_count else defaults[position - required_count]
        plan.append((shape.__struct_fields__[position], default, _writer(name, kind, flat)))

    def write(value: object, parts: list[str]) -> None:
        for field, default, writer in plan:
            content = getattr(value, field)
            if content is not None and content != default:
                writer(content, parts)

    return write


def _writer(name: str, kind: object, flat: Flat | None) -> _Write:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (list, tuple, Sequence):
        return partial(_write_list, _writer(flat.element if flat else name, arguments[0], None))
    if origin in (dict, Mapping):
        assert flat is not None, "a map has names in the Query protocol"
        return partial(_write_map, flat, _writer(flat.value, arguments[1], None))
    if isinstance(kind, type) and issubclass(kind, Struct):
        return partial(_write_structure, name, _structure_writer(kind))
    return partial(_write_scalar, name)


def _write_list(write: _Write, content: object, parts: list[str]) -> None:
    for item in cast("Sequence[object]", content):
        write(item, parts)


def _write_map(flat: Flat, write: _Write, content: object, parts: list[str]) -> None:
    for key, value in cast("Mapping[str, object]", content).items():
        parts.append(f"<{flat.element}><{flat.key}>{_escape(key)}</{flat.key}>")
        write(value, parts)
        parts.append(f"</{flat.element}>")


def _write_structure(name: str, write: _Write, content: object, parts: list[str]) -> None:
    parts.append(f"<{name}>")
    write(content, parts)
    parts.append(f"</{name}>")


def _write_scalar(name: str, content: object, parts: list[str]) -> None:
    match content:
        case bool():
            text = "true" if content else "false"
        case bytes():
            text = b64encode(content).decode()
        case _:
            text = _escape(str(content))
    parts.append(f"<{name}>{text}</{name}>")


def _escape(text: str) -> str:
    """A bare carriage return would be read as a line feed. What XML has no way to say comes as U+FFFD."""
    if not text.isprintable():
        text = FORBIDDEN.sub("\ufffd", text)
    return escape(text, {"\r": "&#xD;"})


def _fields(shape: type[Struct]) -> Iterator[tuple[str, object, Flat | None]]:
    """Name on the wire, type without None, and the names of the Query protocol."""
    hints = get_type_hints(shape, include_extras=True)
    for field, name in zip(shape.__struct_fields__, shape.__struct_encode_fields__, strict=True):
        kind, flat = hints[field], None
        if get_origin(kind) is Annotated:
            kind, *notes = get_args(kind)
            flat = next((note for note in notes if isinstance(note, Flat)), None)
        if get_origin(kind) in (Union, UnionType):
            (kind,) = (each for each in get_args(kind) if each is not NoneType)
        yield name, kind, flat
