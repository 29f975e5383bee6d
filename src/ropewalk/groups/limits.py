"""The bounds of groups that are not an administrator's to choose, each with its reason."""

from typing import Final

GROUP_NAME_CHARACTERS_MAX: Final = 8191
"""Group, instance and protocol names. Records about groups have 16-bit lengths, and a character takes up to four bytes."""

GROUP_PENDING_MEMBERS_MAX: Final = 10_000
"""Member ids of one group that were given out and not used yet; each costs some 300 bytes for a session timeout."""

GROUP_ALARMS_PER_TICK_MAX: Final = 1000
"""Sessions, rounds and expiry checks that one tick carries out, some 10 ms of them; the rest are due at once again."""
