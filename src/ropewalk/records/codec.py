"""The compression codecs a batch can name in its attributes.

They live apart from `compression` so that reading a header does not load four compression libraries.
"""

from enum import IntEnum


class Codec(IntEnum):
    """As numbered in the lowest three bits of a batch's attributes; 5 to 7 mean nothing."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4
