"""What is served where: one table of addresses for a door, with a handler for each method.

What a reader could get wrong
    HEAD is answered by whoever answers GET; the connection leaves the body out.
    A mounted prefix has everything below it, and what is said of it exactly. The longest one counts.
    A handler that raises `Refused` has answered with that.
"""

from collections.abc import Callable, Mapping
from http import HTTPStatus

from ropewalk.http1.message import Answer, Handle, Request, StreamedAnswer, Visitor, text_answer
from ropewalk.http1.parser import Refused

Say = Callable[[Request, HTTPStatus, str], Answer]
"""How a refusal is said: in a line, or on a page."""


class RouteTable:
    """`answer` is a door's handler."""

    def __init__(self, *, say: Say | None = None) -> None:
        self._handlers: dict[str, dict[str, Handle]] = {}
        self._mounts: dict[str, Handle] = {}
        self._say = say or _say_in_a_line

    def add(self, path: str, method: str, handle: Handle) -> None:
        assert path.startswith("/"), "an address begins at the root"
        methods = self._handlers.setdefault(path, {})
        assert method not in methods, f"{method} {path} has a handler already"
        methods[method] = handle

    def get(self, path: str, handle: Handle) -> None:
        self.add(path, "GET", handle)

    def mount(self, prefix: str, handle: Handle) -> None:
        """Everything below `prefix`, which ends in a slash, whatever the method; exact addresses come first."""
        assert prefix[0] == prefix[-1] == "/", "a prefix is a directory"
        assert prefix not in self._mounts, f"{prefix} has a handler already"
        self._mounts[prefix] = handle

    @property
    def addresses(self) -> Mapping[str, tuple[str, ...]]:
        """Each exact address with what it takes."""
        return {path: _allowed(methods) for path, methods in self._handlers.items()}

    async def answer(self, request: Request, visitor: Visitor) -> Answer | StreamedAnswer:
        try:
            return await self._answer(request, visitor)
        except Refused as refused:
            return self._say(request, refused.status, str(refused))

    async def _answer(self, request: Request, visitor: Visitor) -> Answer | StreamedAnswer:
        path = request.path
        methods = self._handlers.get(path)
        if methods is None:
            for prefix in sorted(self._mounts, key=len, reverse=True):
                if path.startswith(prefix):
                    return await self._mounts[prefix](request, visitor)
            raise Refused(HTTPStatus.NOT_FOUND, f"there is no page {path!r}; / lists those there are")
        handle = methods.get("GET" if request.method == "HEAD" else request.method)
        if handle is None:
            allowed = ", ".join(_allowed(methods))
            said = self._say(request, HTTPStatus.METHOD_NOT_ALLOWED, f"{path} takes {allowed}")
            return Answer(
                said.status, said.chunks, said.content_type, (*said.headers, ("allow", allowed)), said.cache
            )
        return await handle(request, visitor)


def _allowed(methods: Mapping[str, Handle]) -> tuple[str, ...]:
    return tuple(
        method for each in sorted(methods) for method in ((each, "HEAD") if each == "GET" else (each,))
    )


def _say_in_a_line(_request: Request, status: HTTPStatus, reason: str) -> Answer:
    return text_answer(status, reason)
