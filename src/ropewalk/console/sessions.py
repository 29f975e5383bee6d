"""Sessions of those who have logged in: who it is, the token that speaks for them to the cluster, and until when.

Invariants
    Of the id that a browser has only a hash is kept; a login has a new one each time.
    A session ends when it is logged out, when nothing was asked for long, and in any case when its token does.
    There are so many at most. Whoever logs in beyond that takes the place of who has been away longest.
"""

from hashlib import sha256
from typing import Final

from msgspec import Struct

from ropewalk.base.limits import CONSOLE_SESSION_IDLE_MS, CONSOLE_SESSION_MS_MAX, CONSOLE_SESSIONS_MAX
from ropewalk.base.ports import Rng

_ID_BYTES: Final = 32


class Session(Struct):
    key: str
    """The hash of its id."""
    user: str
    token: str
    ends_at_ms: int
    seen_at_ms: int

    def __repr__(self) -> str:
        """Whoever has the token is its user."""
        return f"<Session of {self.user!r}>"


def new_id(rng: Rng) -> str:
    """What a browser is given to be known by."""
    return rng.randbytes(_ID_BYTES).hex()


class Sessions:
    def __init__(self) -> None:
        self._by_key: dict[str, Session] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def begin(self, user: str, token: str, token_ends_at_ms: int, *, rng: Rng, now_ms: int) -> str:
        """The id for the browser."""
        while len(self._by_key) >= CONSOLE_SESSIONS_MAX:
            self.end_key(min(self._by_key.values(), key=lambda each: each.seen_at_ms).key)
        cookie = new_id(rng)
        ends_at_ms = min(token_ends_at_ms, now_ms + CONSOLE_SESSION_MS_MAX)
        key = _key(cookie)
        self._by_key[key] = Session(key, user, token, ends_at_ms, now_ms)
        return cookie

    def find(self, cookie: str | None, now_ms: int, *, is_used: bool) -> Session | None:
        """`is_used` where a person asks, and not a page that renews itself: that keeps nobody logged in."""
        session = None if cookie is None else self._by_key.get(_key(cookie))
        if session is None:
            return None
        if not self._counts(session, now_ms):
            self.end_key(session.key)
            return None
        if is_used:
            session.seen_at_ms = now_ms
        return session

    def end(self, cookie: str | None) -> None:
        if cookie is not None:
            self.end_key(_key(cookie))

    def end_key(self, key: str) -> None:
        self._by_key.pop(key, None)

    def sweep(self, now_ms: int) -> None:
        for session in list(self._by_key.values()):
            if not self._counts(session, now_ms):
                self.end_key(session.key)

    def knows(self, key: str) -> bool:
        return key in self._by_key

    @staticmethod
    def _counts(session: Session, now_ms: int) -> bool:
        return now_ms < session.ends_at_ms and now_ms - session.seen_at_ms <= CONSOLE_SESSION_IDLE_MS


def _key(cookie: str) -> str:
    return sha256(cookie.encode(errors="replace")).hexdigest()
