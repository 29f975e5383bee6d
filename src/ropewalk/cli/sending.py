"""Options of the commands that send records: whom to wait for, and how to compress."""

from enum import Enum
from typing import Annotated

import typer


class CodecName(Enum):
    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class AcksName(Enum):
    ALL = "all"
    ALL_AS_NUMBER = "-1"
    LEADER = "1"
    NONE = "0"

    @property
    def number(self) -> int:
        """As Produce has it."""
        return -1 if self is AcksName.ALL else int(self.value)


CodecOption = Annotated[CodecName, typer.Option("--codec", "-z", help="How batches are compressed.")]
AcksOption = Annotated[
    AcksName, typer.Option("--acks", help="Who must have a record before it counts as sent.")
]
