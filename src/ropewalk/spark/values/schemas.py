"""A schema as text, with the schemas that it refers to: all that a task needs, without a file or a registry to ask."""

from collections.abc import Iterator
from typing import Literal, TypeAlias

from msgspec import Struct

Kind: TypeAlias = Literal["json", "avro", "protobuf"]


class SchemaText(Struct, frozen=True):
    """Of Protobuf the text is base64 of a file's descriptor, or of a set of them if `is_set`."""

    kind: Kind
    text: str
    name: str = ""
    """What others call it who refer to it; nothing for the one that was asked for."""
    references: tuple["SchemaText", ...] = ()
    is_set: bool = False

    def dependencies(self) -> Iterator["SchemaText"]:
        """Everything this one refers to, each after what it needs itself, and each once."""
        seen: set[str] = set()
        for reference in self.references:
            for each in (*reference.dependencies(), reference):
                if each.name not in seen:
                    seen.add(each.name)
                    yield each
