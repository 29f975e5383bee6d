"""From a request to a page: the gate, who asks, the page or the action, and what is said where something goes wrong.

What a reader could get wrong
    A handler of the HTTP door is no task (`runtime/steps.py`); pages need timeouts and groups of calls, so each is made in a task of its own.
    Nothing is done for a request before the gate has let it in, and nothing is changed before its token was found to be right.
    A page that renews itself does not keep its reader logged in.
"""

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from msgspec import Struct

from ropewalk.base.errors import NodeStopping, RopewalkError, Throttled, TimedOut
from ropewalk.base.limits import (
    CONSOLE_LOGINS_MAX,
    CONSOLE_NOTICES_MAX,
    CONSOLE_PAGE_MS_MAX,
    CONSOLE_PAGES_MAX,
    CONSOLE_STREAMS_MAX,
)
from ropewalk.base.ports import Clock, Network, Pool, Rng
from ropewalk.client.connections.settings import ClientSettings
from ropewalk.client.errors import SILENCE, AuthenticationFailed, RemoteError
from ropewalk.console.clients import Clients, Opened
from ropewalk.console.gate import (
    GUARDS,
    STRICT_TRANSPORT,
    TOKEN_FIELD,
    TOKEN_HEADER,
    Place,
    check_request,
    check_token,
    make_token,
)
from ropewalk.console.login import LoginFailed, log_in
from ropewalk.console.options import ConsoleOptions
from ropewalk.console.page import BASE, REFUSALS, Action, Asked, Done, Page, Shown, link
from ropewalk.console.pages import PAGES
from ropewalk.console.reach import Entry, Reach
from ropewalk.console.rendering import Rendering
from ropewalk.console.sessions import Session, Sessions, new_id
from ropewalk.http1.compression import compressed
from ropewalk.http1.cookies import cookie_name, cookies_of, end_cookie, set_cookie
from ropewalk.http1.events import EventStream
from ropewalk.http1.forms import Form, form_of
from ropewalk.http1.message import Answer, Request, StreamedAnswer, Visitor
from ropewalk.http1.parser import Refused
from ropewalk.runtime.ports import SystemClientPorts
from ropewalk.runtime.visits import Visits
from ropewalk.wire.error_code import ErrorCode

_HTML: Final = "text/html; charset=utf-8"
_SECRET_BYTES: Final = 32
_ANYBODY: Final = ""
"""The key of a client that speaks for everybody who asks."""
_FORBIDDEN: Final = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
_UNKNOWN: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    }
)


class _Reader(Struct, frozen=True):
    """Who asks."""

    cookie: str
    is_new: bool
    """Whether the cookie is to be set with the answer."""
    session: Session | None
    """None where nobody has to log in."""

    @property
    def key(self) -> str:
        return _ANYBODY if self.session is None else self.session.key

    @property
    def user(self) -> str | None:
        return None if self.session is None else self.session.user


class Application:
    def __init__(
        self,
        *,
        clock: Clock,
        rng: Rng,
        pool: Pool,
        network: Network,
        place: Place,
        port: int,
        reach: Reach,
        options: ConsoleOptions,
        rendering: Rendering,
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._pool = pool
        self._ports = SystemClientPorts(clock, rng, network)
        self._place = place
        self._reach = reach
        self._options = options
        self._rendering = rendering
        self._secret = rng.randbytes(_SECRET_BYTES)
        self._cookie = cookie_name(f"ropewalk_console_{port}", is_encrypted=place.is_encrypted)
        self._sessions = Sessions()
        self._clients = Clients(network, clock, rng, reach)
        self._visits = Visits(count_max=CONSOLE_PAGES_MAX)
        self._streaming = Visits(count_max=CONSOLE_STREAMS_MAX)
        self._watching = Visits(count_max=CONSOLE_STREAMS_MAX)
        self._logging_in = Visits(count_max=CONSOLE_LOGINS_MAX)
        self._notices: dict[str, tuple[str, str]] = {}
        self._pages = {page.name: page for page in PAGES if page.needs(options)}
        self._menu = [page for page in self._pages.values() if page.menu is not None]
        self._guards = (*GUARDS, STRICT_TRANSPORT) if place.is_encrypted else GUARDS
        self.answer = compressed(self._answer)

    async def stop(self) -> None:
        for visits in (self._visits, self._streaming, self._watching, self._logging_in):
            await visits.stop()
        self._clients.close_all()

    def sweep(self) -> None:
        """Called every few seconds."""
        self._sessions.sweep(self._clock.now_ms())
        self._clients.sweep(lambda key: key == _ANYBODY or self._sessions.knows(key))

    async def _answer(self, request: Request, visitor: Visitor) -> Answer | StreamedAnswer:
        try:
            check_request(request, self._place)
            if request.path.startswith(BASE + "static/"):
                return self._guarded(self._rendering.files.answer(request))
            return await self._route(request, visitor)
        except Refused as refused:
            return self._refusal(refused.status, str(refused))
        except Throttled as busy:
            return self._refusal(HTTPStatus.SERVICE_UNAVAILABLE, str(busy))
        except NodeStopping as stopping:
            return self._refusal(HTTPStatus.SERVICE_UNAVAILABLE, str(stopping))

    async def _route(self, request: Request, visitor: Visitor) -> Answer | StreamedAnswer:
        if self._reach.entry is Entry.CLOSED:
            return self._refusal(HTTPStatus.FORBIDDEN, self._reach.why)
        path = request.path.removeprefix(BASE)
        if path == "login":
            return await self._log_in(request)
        reader = self._reader(request)
        if reader is None:
            if request.method == "POST":
                raise Refused(HTTPStatus.UNAUTHORIZED, "log in first; the session has ended")
            return self._to_login(request)
        if path == "logout" and request.method == "POST":
            check_token(self._secret, reader.cookie, _token_of(request, form_of(request)))
            self._sessions.end(reader.cookie)
            self._clients.close(reader.key)
            return self._moved(BASE + "login", end_cookie(self._cookie))
        name, _, more = path.partition("/")
        page = self._pages.get(name or self._menu[0].name)
        if page is None:
            raise Refused(HTTPStatus.NOT_FOUND, "there is no such page on this console")
        if more in page.streams and request.method == "GET":
            return self._stream(page, more, reader, request, visitor)
        if request.method == "POST":
            return await self._act(page, more, reader, request)
        if more:
            raise Refused(HTTPStatus.NOT_FOUND, "there is no such page on this console")
        return await self._show(page, reader, request, Form())

    # Who asks

    def _reader(self, request: Request) -> _Reader | None:
        """None where somebody has to log in first."""
        cookie = cookies_of(request).get(self._cookie)
        if self._reach.entry is not Entry.LOGIN:
            is_known = cookie is not None and cookie.isalnum()
            return _Reader(cookie if is_known and cookie else new_id(self._rng), not is_known, None)
        is_used = "hx-request" not in request.headers and "text/event-stream" not in request.headers.get(
            "accept", ""
        )
        session = self._sessions.find(cookie, self._clock.now_ms(), is_used=is_used)
        return None if session is None or cookie is None else _Reader(cookie, False, session)

    def _settings(self, reader: _Reader) -> ClientSettings:
        if reader.session is None:
            return self._reach.settings
        return self._reach.of_token(reader.session.token)

    async def _log_in(self, request: Request) -> Answer:
        if self._reach.entry is not Entry.LOGIN:
            return self._moved(BASE)
        cookie = cookies_of(request).get(self._cookie) or ""
        is_new = not cookie.isalnum()
        if is_new:
            cookie = new_id(self._rng)
        headers = (set_cookie(self._cookie, cookie),) if is_new else ()
        if request.method != "POST":
            return self._login_page(HTTPStatus.OK, cookie, None, "", *headers)
        form = form_of(request)
        check_token(self._secret, None if is_new else cookie, _token_of(request, form))
        user = form.text("user")
        work = log_in(self._clients, self._reach, user, form.raw("password"))
        try:
            token = await self._logging_in.begin("login at the console", work)
        except LoginFailed as failed:
            return self._login_page(HTTPStatus.UNAUTHORIZED, cookie, str(failed), user)
        except RopewalkError as error:
            return self._login_page(HTTPStatus.SERVICE_UNAVAILABLE, cookie, str(error), user)
        begun = self._sessions.begin(
            token.user, token.token, token.ends_at_ms, rng=self._rng, now_ms=self._clock.now_ms()
        )
        return self._moved(BASE, set_cookie(self._cookie, begun))

    # Pages, actions and streams

    async def _show(
        self,
        page: Page,
        reader: _Reader,
        request: Request,
        form: Form,
        *,
        problem: str | None = None,
        status: HTTPStatus = HTTPStatus.OK,
    ) -> Answer:
        try:
            shown = await self._visits.begin(f"page {page.name}", self._make(page, reader, request, form))
        except AuthenticationFailed as error:
            return self._session_over(reader, error)
        except RopewalkError as error:
            if isinstance(error, Throttled | NodeStopping):
                raise
            return self._trouble(page, reader, request, error, problem)
        return self._page(
            shown.template,
            {**shown.values, "title": shown.title or page.title, "problem": problem},
            page,
            reader,
            status,
            notice=self._take_notice(reader, request.query.get("said")),
        )

    async def _make(self, page: Page, reader: _Reader, request: Request, form: Form) -> Shown:
        try:
            async with asyncio.timeout(CONSOLE_PAGE_MS_MAX / 1000):
                return await page.show(self._asked(await self._opened(reader), reader, request, form))
        except TimeoutError:
            seconds = CONSOLE_PAGE_MS_MAX // 1000
            raise TimedOut(f"the cluster has not answered within {seconds} s") from None

    async def _act(self, page: Page, name: str, reader: _Reader, request: Request) -> Answer:
        form = form_of(request)
        check_token(self._secret, reader.cookie, _token_of(request, form))
        found = page.actions.get(name)
        if found is None:
            raise Refused(HTTPStatus.NOT_FOUND, "there is no such action on this page")
        action = found if isinstance(found, Action) else Action(found)
        if action.changes and self._options.is_readonly:
            raise Refused(
                HTTPStatus.FORBIDDEN, "this console only reads (console.readonly); nothing was changed"
            )
        try:
            done = await self._visits.begin(
                f"action {page.name}/{name}", self._carry_out(action, reader, request, form)
            )
        except AuthenticationFailed as error:
            return self._session_over(reader, error)
        except RopewalkError as error:
            if isinstance(error, Throttled | NodeStopping):
                raise
            return await self._show(page, reader, request, form, problem=str(error), status=_status_of(error))
        return self._moved(self._with_notice(reader, done))

    async def _carry_out(self, action: Action, reader: _Reader, request: Request, form: Form) -> Done:
        return await action.act(self._asked(await self._opened(reader), reader, request, form))

    def _stream(
        self, page: Page, name: str, reader: _Reader, request: Request, visitor: Visitor
    ) -> StreamedAnswer:
        stream = EventStream()
        self._streaming.begin(f"stream {page.name}/{name}", self._tell(page, name, reader, request, stream))
        answer = stream.answer(visitor)
        return StreamedAnswer(answer.status, answer.stream, answer.content_type, self._guards)

    async def _tell(
        self, page: Page, name: str, reader: _Reader, request: Request, stream: EventStream
    ) -> None:
        """Ends with the stream, whoever ends it."""
        telling = asyncio.ensure_future(self._tell_until_done(page, name, reader, request, stream))
        try:
            await asyncio.wait((telling, stream.ended), return_when=asyncio.FIRST_COMPLETED)
        finally:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)
            stream.close()

    async def _tell_until_done(
        self, page: Page, name: str, reader: _Reader, request: Request, stream: EventStream
    ) -> None:
        try:
            opened = await self._opened(reader)
            await page.streams[name](self._asked(opened, reader, request, Form()), stream)
        except RopewalkError as error:
            stream.show("trouble", str(error))

    async def _opened(self, reader: _Reader) -> Opened:
        opened = await self._clients.of(reader.key, lambda: self._settings(reader))
        if not opened.watcher.is_running:
            opened.watcher.is_running = True
            self._watching.begin("look at the cluster", opened.watcher.run())
        return opened

    def _asked(self, opened: Opened, reader: _Reader, request: Request, form: Form) -> Asked:
        return Asked(
            query=request.query,
            form=form,
            client=opened.client,
            watcher=opened.watcher,
            clock=self._clock,
            rng=self._rng,
            pool=self._pool,
            options=self._options,
            ports=self._ports,
            is_open=self._reach.entry is Entry.OPEN,
            user=reader.user,
        )

    # What is answered

    def _page(
        self,
        template: str,
        values: Mapping[str, object],
        page: Page | None,
        reader: _Reader,
        status: HTTPStatus,
        *,
        notice: str | None = None,
    ) -> Answer:
        said = {
            "menu": self._menu,
            "here": None if page is None else page.under or page.name,
            "user": reader.user,
            "entry": self._reach.entry.value,
            "acts_as": self._reach.settings.security.sasl_username,
            "options": self._options,
            "notice": notice,
            "form_token": lambda: make_token(self._secret, reader.cookie, self._rng),
            "token_field": TOKEN_FIELD,
        }
        headers = (set_cookie(self._cookie, reader.cookie),) if reader.is_new else ()
        body = self._rendering.render(template, {**said, **values})
        return self._guarded(Answer(status, (body,), _HTML, headers))

    def _login_page(
        self, status: HTTPStatus, cookie: str, problem: str | None, user: str, *headers: tuple[str, str]
    ) -> Answer:
        values = {
            "title": "Log in",
            "problem": problem,
            "tried": user,
            "form_token": lambda: make_token(self._secret, cookie, self._rng),
            "token_field": TOKEN_FIELD,
        }
        body = self._rendering.render("login.html", values)
        return self._guarded(Answer(status, (body,), _HTML, headers))

    def _trouble(
        self, page: Page, reader: _Reader, request: Request, error: RopewalkError, problem: str | None
    ) -> Answer:
        """In place of a page that cannot be made, with the way to it."""
        again = link(page.name, **request.query)
        values = {"title": page.title, "trouble": str(error), "problem": problem, "again": again}
        return self._page("trouble.html", values, page, reader, _status_of(error))

    def _refusal(self, status: HTTPStatus, reason: str) -> Answer:
        values = {"title": status.phrase, "status": status.value, "reason": reason}
        body = self._rendering.render("refusal.html", values)
        return self._guarded(Answer(status, (body,), _HTML))

    def _session_over(self, reader: _Reader, error: RopewalkError) -> Answer:
        """The cluster does not take the token any more: the user's password has changed, or the user is gone."""
        if reader.session is None:
            return self._refusal(HTTPStatus.BAD_GATEWAY, str(error))
        self._sessions.end(reader.cookie)
        self._clients.close(reader.key)
        return self._moved(BASE + "login", end_cookie(self._cookie))

    def _to_login(self, request: Request) -> Answer:
        if "hx-request" in request.headers:  # a part of a page: have the browser load the login as a whole
            answer = Answer(HTTPStatus.UNAUTHORIZED, headers=(("hx-redirect", BASE + "login"),))
            return self._guarded(answer)
        return self._moved(BASE + "login")

    def _moved(self, address: str, *headers: tuple[str, str]) -> Answer:
        return self._guarded(Answer(HTTPStatus.SEE_OTHER, headers=(("location", address), *headers)))

    def _guarded(self, answer: Answer) -> Answer:
        headers = (*answer.headers, *self._guards)
        return Answer(answer.status, answer.chunks, answer.content_type, headers, answer.cache)

    # Notices

    def _with_notice(self, reader: _Reader, done: Done) -> str:
        """Kept here, and not in the address, where anybody could write one."""
        key = new_id(self._rng)[:16]
        self._notices[key] = (reader.cookie, done.notice)
        while len(self._notices) > CONSOLE_NOTICES_MAX:
            self._notices.pop(next(iter(self._notices)))
        separator = "&" if "?" in done.address else "?"
        return f"{done.address}{separator}said={key}"

    def _take_notice(self, reader: _Reader, key: str | None) -> str | None:
        cookie, notice = self._notices.get(key or "", ("", ""))
        if key is None or cookie != reader.cookie:
            return None
        del self._notices[key]
        return notice


def _token_of(request: Request, form: Form) -> str:
    return request.headers.get(TOKEN_HEADER) or form.text(TOKEN_FIELD)


def _status_of(error: RopewalkError) -> HTTPStatus:
    if type(error) in REFUSALS:
        return REFUSALS[type(error)]
    if isinstance(error, SILENCE):
        return HTTPStatus.BAD_GATEWAY
    if isinstance(error, RemoteError):
        if error.code in _FORBIDDEN:
            return HTTPStatus.FORBIDDEN
        return HTTPStatus.NOT_FOUND if error.code in _UNKNOWN else HTTPStatus.CONFLICT
    return HTTPStatus.CONFLICT
