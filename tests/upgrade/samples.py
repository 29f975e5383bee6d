"""One of everything that nodes write: metadata records, and messages between nodes, as bytes of the version that runs this.

`tests/upgrade/write-fixtures` runs it with a release on the Python path and keeps what it prints; the tests read that with this version.
It imports nothing of the tests, and of a release only what every one has.
"""

import json
import sys
import types
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from ropewalk.kafka.peer.apis import PEER_APIS
from ropewalk.metadata.records import MetadataRecord, encode_records

OWN_KEYS_FROM = 10_000


def sample(hint: Any) -> Any:
    """A value of that type which is not the default of anything."""
    if hasattr(hint, "__supertype__"):
        return sample(hint.__supertype__)
    if hasattr(hint, "__metadata__"):
        return sample(hint.__origin__)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return sample(next(each for each in arguments if each is not type(None)))
    if origin is tuple:
        return (
            (sample(arguments[0]),)
            if arguments[-1] is Ellipsis
            else tuple(sample(each) for each in arguments)
        )
    if origin is dict:
        return {sample(arguments[0]): sample(arguments[1])}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return next(iter(hint))
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return hint(**{name: sample(each) for name, each in get_type_hints(hint).items()})
    plain: dict[object, object] = {int: 7, str: "text", bytes: bytes(range(16)), bool: True, float: 2.5}
    return plain[hint]


def records() -> dict[str, list[Any]]:
    """By kind: the bytes of one, and what it says."""
    found: dict[str, list[Any]] = {}
    for kind in get_args(MetadataRecord):
        record = sample(kind)
        name = str(kind.__struct_config__.tag)
        found[name] = [encode_records((record,)).hex(), json.loads(msgspec.json.encode(record))]
    return found


def frames() -> dict[str, list[Any]]:
    """By API, side and version: the bytes of one, and what it says."""
    found: dict[str, list[Any]] = {}
    for api in PEER_APIS:
        if api.key < OWN_KEYS_FROM:
            continue
        for version in api.versions:
            request = b"".join(map(bytes, api.encode_request(version, sample(api.request))))
            response = b"".join(map(bytes, api.encode_response(version, sample(api.response))))
            asked = api.decode_request(version, memoryview(request), 0, len(request))
            answered = api.decode_response(version, memoryview(response), 0, len(response))
            found[f"{api.name} request v{version}"] = [request.hex(), said(asked)]
            found[f"{api.name} response v{version}"] = [response.hex(), said(answered)]
    return found


def said(message: Any) -> Any:
    return json.loads(msgspec.json.encode(message, enc_hook=bytes))


if __name__ == "__main__":
    json.dump({"records": records(), "frames": frames()}, sys.stdout, indent=1, sort_keys=True)
