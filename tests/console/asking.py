"""A browser as bare as can be: it keeps cookies, follows nothing, and sends what it is told to."""

import http.client
import re
from collections.abc import Mapping
from html import unescape
from typing import Final
from urllib.parse import urlencode, urlsplit

from msgspec import Struct

FORM: Final = "application/x-www-form-urlencoded"


class Page(Struct, frozen=True):
    status: int
    headers: Mapping[str, str]
    """By name in lower case; of Set-Cookie the last."""
    text: str

    @property
    def token(self) -> str:
        found = re.search(r'name="console_token" value="([0-9a-f]+)"', self.text)
        assert found is not None, f"no form on this page: {self.text[:2000]}"
        return found[1]

    @property
    def location(self) -> str:
        return self.headers["location"]

    @property
    def words(self) -> str:
        """What a person reads."""
        body = re.sub(r"<(script|style|head)\b.*?</\1>", "", self.text, flags=re.DOTALL)
        return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


class Browser:
    def __init__(self, base: str) -> None:
        parts = urlsplit(base)
        self.base = base
        self.authority = parts.netloc
        self.cookies: dict[str, str] = {}

    def get(self, path: str, **headers: str) -> Page:
        return self.ask("GET", path, None, headers)

    def post(self, path: str, fields: Mapping[str, object], **headers: str) -> Page:
        """As a form of a page of the same origin sends it, unless `headers` say otherwise."""
        said = {"content-type": FORM, "origin": self.base, "sec-fetch-site": "same-origin"}
        body = urlencode(fields, doseq=True).encode()
        return self.ask("POST", path, body, said | headers)

    def submit(self, page: str, action: str, **fields: object) -> Page:
        """Load the page for the token of its forms, and send one of them."""
        return self.post(action, {"console_token": self.get(page).token, **fields})

    def ask(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Page:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookies and "cookie" not in named:
            named["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        connection = http.client.HTTPConnection(self.authority, timeout=30)
        try:
            connection.request(method, path, body, named)
            answer = connection.getresponse()
            text = answer.read().decode()
            for name, value in answer.getheaders():
                if name.lower() == "set-cookie":
                    self._keep(value)
        finally:
            connection.close()
        return Page(answer.status, {name.lower(): value for name, value in answer.getheaders()}, text)

    def _keep(self, header: str) -> None:
        pair, *attributes = header.split("; ")
        name, _, value = pair.partition("=")
        if "Max-Age=0" in attributes:
            self.cookies.pop(name, None)
        else:
            self.cookies[name] = value
