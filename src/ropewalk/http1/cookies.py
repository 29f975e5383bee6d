"""Cookies: read from a request, and written so that scripts and other sites get nothing of them.

What a reader could get wrong
    A name that comes twice counts for nothing: another host of the domain may have set the second one, and whoever takes the first or the
    last lets it choose whose session a reader is in.
    The prefix `__Host-` is a promise that browsers hold: set over TLS, for this host alone, for every path.
"""

from collections.abc import Mapping
from typing import Final

from ropewalk.http1.message import Request

HOST_PREFIX: Final = "__Host-"
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~")
"""What may stand in a value that we set: nothing that any reader of cookies takes for something else."""


def cookies_of(request: Request) -> Mapping[str, str]:
    found: dict[str, str] = {}
    doubled: set[str] = set()
    for pair in request.headers.get("cookie", "").split(";"):
        name, equals, value = pair.strip().partition("=")
        if not equals:
            continue
        if name in found:
            doubled.add(name)
        found[name] = value
    return {name: value for name, value in found.items() if name not in doubled}


def cookie_name(name: str, *, is_encrypted: bool) -> str:
    return HOST_PREFIX + name if is_encrypted else name


def set_cookie(name: str, value: str, *, max_age_s: int | None = None) -> tuple[str, str]:
    """The header. Without an age the browser forgets it with its window; an age of 0 takes it away."""
    assert _PLAIN.issuperset(value), "a value is made by us, of plain characters"
    parts = [f"{name}={value}", "Path=/", "HttpOnly", "SameSite=Lax"]
    if name.startswith(HOST_PREFIX):
        parts.append("Secure")
    if max_age_s is not None:
        parts.append(f"Max-Age={max_age_s}")
    return "set-cookie", "; ".join(parts)


def end_cookie(name: str) -> tuple[str, str]:
    return set_cookie(name, "ended", max_age_s=0)
