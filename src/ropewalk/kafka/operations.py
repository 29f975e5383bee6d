"""Which operations a client may perform, as the bits that Metadata and its kin answer with.

Where nothing is checked everybody may do whatever a resource knows, which is said here; else `kafka/rights` says what a caller may. Tools
grey out buttons by this.
"""

from typing import Final

_READ: Final = 1 << 3
_WRITE: Final = 1 << 4
_CREATE: Final = 1 << 5
_DELETE: Final = 1 << 6
_ALTER: Final = 1 << 7
_DESCRIBE: Final = 1 << 8
_CLUSTER_ACTION: Final = 1 << 9
_DESCRIBE_CONFIGS: Final = 1 << 10
_ALTER_CONFIGS: Final = 1 << 11
_IDEMPOTENT_WRITE: Final = 1 << 12

OPERATIONS_NOT_ASKED: Final = -(2**31)

TOPIC_OPERATIONS: Final = (
    _READ | _WRITE | _CREATE | _DELETE | _ALTER | _DESCRIBE | _DESCRIBE_CONFIGS | _ALTER_CONFIGS
)
GROUP_OPERATIONS: Final = _READ | _DELETE | _DESCRIBE | _DESCRIBE_CONFIGS | _ALTER_CONFIGS
CLUSTER_OPERATIONS: Final = (
    _CREATE | _ALTER | _DESCRIBE | _CLUSTER_ACTION | _DESCRIBE_CONFIGS | _ALTER_CONFIGS | _IDEMPOTENT_WRITE
)
