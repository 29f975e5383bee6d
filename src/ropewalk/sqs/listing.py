"""Lists in pages: what is asked for at once, and the token by which the next page is asked for."""

from base64 import b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from ropewalk.sqs.errors import INVALID_PARAMETER_VALUE, SqsRefusal, invalid

RESULTS_MAX: Final = 1_000


def page(
    names: Sequence[str], *, count_max: int | None, token: str | None
) -> tuple[Sequence[str], str | None]:
    """Names in their order, and the token of the next page. Without `count_max` there is one page. Raises `SqsRefusal`."""
    if count_max is not None and not 1 <= count_max <= RESULTS_MAX:
        reason = f"MaxResults must be an integer between 1 and {RESULTS_MAX}."
        raise invalid("MaxResults", count_max, reason)
    begin = bisect_right(names, _decode(token)) if token else 0
    end = begin + (count_max or RESULTS_MAX)
    shown = names[begin:end]
    next_token = _encode(shown[-1]) if count_max is not None and end < len(names) else None
    return shown, next_token


def _encode(name: str) -> str:
    return urlsafe_b64encode(name.encode()).decode()


def _decode(token: str) -> str:
    try:
        return b64decode(token.encode(), altchars=b"-_", validate=True).decode()
    except (Base64Error, ValueError):
        raise SqsRefusal(INVALID_PARAMETER_VALUE, "Invalid or expired next token.") from None
