"""Parameters of AWS JSON as those of the Query protocol, by a table written by hand: what the door derives is compared with it."""

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence

_LISTS = {
    "AttributeNames": "AttributeName",
    "MessageAttributeNames": "MessageAttributeName",
    "MessageSystemAttributeNames": "MessageSystemAttributeName",
    "TagKeys": "TagKey",
    "AWSAccountIds": "AWSAccountId",
    "Actions": "ActionName",
}
_MAPS = {
    "Attributes": ("Attribute", "Name", "Value"),
    "tags": ("Tag", "Key", "Value"),
    "Tags": ("Tag", "Key", "Value"),
    "MessageAttributes": ("MessageAttribute", "Name", "Value"),
    "MessageSystemAttributes": ("MessageSystemAttribute", "Name", "Value"),
}


def flattened(action: str, parameters: Mapping[str, object]) -> dict[str, str]:
    return dict(_flatten(f"{action}RequestEntry", parameters, ""))


def _flatten(entry: str, parameters: Mapping[str, object], prefix: str) -> Iterator[tuple[str, str]]:
    for name, value in parameters.items():
        if name in _MAPS and isinstance(value, Mapping):
            element, key_name, value_name = _MAPS[name]
            for number, (key, content) in enumerate(value.items(), 1):
                yield f"{prefix}{element}.{number}.{key_name}", key
                place = f"{prefix}{element}.{number}.{value_name}"
                if isinstance(content, Mapping):
                    yield from _flatten(entry, content, f"{place}.")
                else:
                    yield place, _scalar(content)
        elif name == "Entries" and isinstance(value, Sequence):
            for number, content in enumerate(value, 1):
                yield from _flatten(entry, content, f"{prefix}{entry}.{number}.")
        elif name in _LISTS and isinstance(value, Sequence):
            for number, content in enumerate(value, 1):
                yield f"{prefix}{_LISTS[name]}.{number}", _scalar(content)
        else:
            yield f"{prefix}{name}", _scalar(value)


def _scalar(value: object) -> str:
    return b64encode(value).decode() if isinstance(value, bytes) else str(value)
