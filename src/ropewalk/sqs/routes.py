"""What is asked at which address, in which protocol and by whom: from a request of HTTP to an action, and back.

POST /                        AWS JSON 1.0, where `X-Amz-Target` names the action; else a form of the Query protocol
POST, GET /ACCOUNT/NAME       the Query protocol, of the queue that the address names
GET /_aws/sqs/messages        a look at messages, as LocalStack has it
GET /livez, /readyz           health; nobody has to sign for it
"""

from collections.abc import Awaitable, Callable, Coroutine
from http import HTTPStatus
from typing import Any, Final

from msgspec import structs

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ports import Rng
from ropewalk.http1.message import Answer, Request, Visitor, text_answer
from ropewalk.sqs import json_protocol, peeking, query_protocol
from ropewalk.sqs.actions import BY_NAME, BY_TARGET, Action
from ropewalk.sqs.admission import Admission
from ropewalk.sqs.authentication import Authentication, Identity
from ropewalk.sqs.desk import Caller
from ropewalk.sqs.errors import (
    MISSING_AUTHENTICATION_TOKEN,
    NO_SUCH_VERSION,
    UNKNOWN_OPERATION,
    SqsRefusal,
    missing,
)
from ropewalk.sqs.shapes import Input, require
from ropewalk.sqs.urls import origin_of

_ID_PREFIX_BYTES: Final = 8
_PEEK: Final = "/_aws/sqs/messages"
_METHODS: Final = ("GET", "HEAD", "POST")

Page = Callable[[Request], Awaitable[Answer]]


class Routes:
    def __init__(
        self,
        admission: Admission,
        authentication: Authentication,
        rng: Rng,
        *,
        origin: str = "",
        scheme: str = "http",
        pages: dict[str, Page] | None = None,
    ) -> None:
        """`origin` is what addresses of queues begin with; empty: whatever the client asked, by `scheme` or by
        https where something in front of the door says so. `pages` are those of health."""
        self._admission = admission
        self._authentication = authentication
        self._origin = origin
        self._scheme = scheme
        self._pages = pages or {}
        digits = rng.randbytes(_ID_PREFIX_BYTES).hex()
        self._id_prefix = f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}"
        self._request_count = 0

    def answer(self, request: Request, visitor: Visitor) -> Coroutine[Any, None, Answer]:
        target = request.headers.get(json_protocol.TARGET)
        if target is not None and request.method == "POST":
            return self._answer_json(request, visitor, target)
        return self._answer_other(request, visitor)

    async def _answer_other(self, request: Request, visitor: Visitor) -> Answer:
        page = self._pages.get(request.path)
        if page is not None and request.method in ("GET", "HEAD"):
            return await page(request)
        if request.method not in _METHODS:
            allowed = ", ".join(_METHODS)
            return text_answer(
                HTTPStatus.METHOD_NOT_ALLOWED, f"{request.path} takes {allowed}", ("allow", allowed)
            )
        if request.path == _PEEK or request.path.startswith(_PEEK + "/"):
            return await self._answer_peek(request, visitor)
        return await self._answer_query(request, visitor)

    async def _answer_json(self, request: Request, visitor: Visitor, target: str) -> Answer:
        request_id = self._next_id()
        try:
            identity = self._authentication.identify(request)
            action = BY_TARGET.get(target)
            if action is None:
                raise SqsRefusal(UNKNOWN_OPERATION, f"there is no action {target[:80]!r} here")
            asked = action.decode_json(request.body)
            if action.request.REQUIRED:
                require(asked)
            caller = self._caller(request, visitor, identity)
            return json_protocol.answer(await self._admission.carry_out(action, asked, caller), request_id)
        except RopewalkError as error:
            return json_protocol.refuse(error, request_id)

    async def _answer_query(self, request: Request, visitor: Visitor) -> Answer:
        request_id = self._next_id()
        try:
            fields = query_protocol.parameters(request)
            name = fields.get("Action")
            if name is None and not request.body and "authorization" not in request.headers:
                raise SqsRefusal(MISSING_AUTHENTICATION_TOKEN)
            identity = self._authentication.identify(request)
            action = self._named(name, fields)
            asked = self._with_queue_of_path(action.decode_query(fields), request.path)
            require(asked)
            caller = self._caller(request, visitor, identity)
            output = await self._admission.carry_out(action, asked, caller)
            return query_protocol.answer(action.encode_xml(output, request_id), request_id)
        except RopewalkError as error:
            return query_protocol.refuse(error, request_id)

    def _named(self, name: str | None, fields: dict[str, str]) -> Action:
        if not name:
            raise missing("Action")
        action = BY_NAME.get(name)
        version = fields.get("Version", query_protocol.VERSION)
        if action is None:
            text = f"The action {name[:80]} is not valid for this endpoint."
            raise SqsRefusal(UNKNOWN_OPERATION, text)
        if version != query_protocol.VERSION:
            text = f"The requested version ( {version[:80]} ) is not valid."
            raise SqsRefusal(NO_SUCH_VERSION, text)
        return action

    @staticmethod
    def _with_queue_of_path(asked: Input, path: str) -> Input:
        """A request to a queue's own address need not name the queue again."""
        if getattr(asked, "queue_url", None) == "" and path != "/":
            return structs.replace(asked, queue_url=path)
        return asked

    async def _answer_peek(self, request: Request, visitor: Visitor) -> Answer:
        request_id = self._next_id()
        try:
            caller = self._caller(request, visitor, self._authentication.identify(request))
            return await peeking.answer(request, self._admission, caller, request_id, _PEEK)
        except RopewalkError as error:
            return query_protocol.refuse(error, request_id)

    def _caller(self, request: Request, visitor: Visitor, identity: Identity) -> Caller:
        origin = self._origin
        if not origin:
            scheme = "https" if request.headers.get("x-forwarded-proto") == "https" else self._scheme
            origin = origin_of(scheme, request.host)
        return Caller(
            identity.access_key,
            identity.region,
            origin,
            visitor,
            identity.is_admin or self._admission.is_on,  # then rules say who administrates
            identity.owner,
            visitor.address,
        )

    def _next_id(self) -> str:
        """Unlike any other, of this process or another; nobody needs it to be random."""
        self._request_count += 1
        digits = f"{self._request_count:016x}"
        return f"{self._id_prefix}-{digits[:4]}-{digits[4:]}"
