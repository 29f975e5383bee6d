"""What a form of a page sends: fields with one value or several, as browsers encode them.

What a reader could get wrong
    A form that has no file in it comes as `application/x-www-form-urlencoded`; anything else is refused, so that no page of another site can
    send something that only looks like one.
"""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from urllib.parse import parse_qs

from msgspec import Struct

from ropewalk.base.limits import HTTP_FORM_FIELDS_MAX
from ropewalk.http1.message import Request
from ropewalk.http1.parser import Refused


class Form(Struct, frozen=True):
    values: Mapping[str, Sequence[str]] = {}

    def text(self, name: str) -> str:
        """The last value, without blanks around it; empty where there is none."""
        values = self.values.get(name)
        return values[-1].strip() if values else ""

    def raw(self, name: str) -> str:
        """As it was sent, for passwords."""
        values = self.values.get(name)
        return values[-1] if values else ""

    def all(self, name: str) -> Sequence[str]:
        return self.values.get(name, ())

    def is_set(self, name: str) -> bool:
        return bool(self.values.get(name))


def form_of(request: Request) -> Form:
    """Raises `Refused`."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/x-www-form-urlencoded":
        raise Refused(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "a form is sent as application/x-www-form-urlencoded"
        )
    try:
        values = parse_qs(
            request.body.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=HTTP_FORM_FIELDS_MAX,
        )
    except ValueError:
        reason = f"a form has up to {HTTP_FORM_FIELDS_MAX} fields, of percent-encoded UTF-8"
        raise Refused(HTTPStatus.BAD_REQUEST, reason) from None
    return Form(values)
