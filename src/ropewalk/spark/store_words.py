"""What an object store has said, in one sentence: out of the answers of S3 as delta-rs, Arrow and obstore hand them on. A core."""

import re
from typing import Final

BUSY: Final = "the object store asks to slow down"
_CODE: Final = re.compile(r"<Code>(\w+)</Code>")
_MESSAGE: Final = re.compile(r"<Message>(.*?)</Message>", re.DOTALL)
_ARROW: Final = re.compile(r"AWS Error (\w+) during \w+ operation: ([^\n]*)")
_STATUS: Final = re.compile(r"status code\W{0,40}?(\d{3})\b", re.DOTALL)
_BUCKET: Final = re.compile(
    r"<BucketName>([^<]+)</BucketName>|in bucket '([^']+)'|(?:GET|PUT|HEAD|POST|DELETE) https?://[^/\s]+/([^/?\s]+)"
)
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
_OTHER: Final = re.compile(r"Generic (\w+) error")
"""Stores that only Delta knows of its own accord: its library tells the cause of a cause on a line of its own, the innermost last."""
_MARKS: Final = ("Generic S3 error", "AWS Error ", "<Error><Code>", "error sending request")
"""One of them is in whatever a store or the way to it has said."""

_KEYS: Final = frozenset(
    {
        "ACCESSDENIED", "INVALIDACCESSKEYID", "SIGNATUREDOESNOTMATCH", "INVALIDTOKEN", "EXPIREDTOKEN", "AUTHFAILURE", "UNAUTHORIZED",
        "FORBIDDEN", "INVALIDCLIENTTOKENID", "UNRECOGNIZEDCLIENT", "MISSINGAUTHENTICATIONTOKEN", "401", "403",
    }
)  # fmt: skip
_BUSY: Final = frozenset(
    {"SLOWDOWN", "SERVICEUNAVAILABLE", "THROTTLING", "TOOMANYREQUESTS", "REQUESTLIMITEXCEEDED", "429", "503"}
)
_UNREACHED: Final = re.compile(
    r"error sending request|NETWORK_CONNECTION|dns error|tcp connect error|Connection refused|timed out|curlCode",
    re.IGNORECASE,
)


def said_by_store(text: str) -> str | None:
    """None if no store has to do with it."""
    text = _COLOURS.sub("", text)
    other = _OTHER.search(text)
    if other is not None and other[1] not in ("S3", "LocalFileSystem"):
        reasons = [each.strip() for each in text[other.end() :].split("↳") if each.strip()]
        said = _one_line(reasons[-1]) if reasons else "nothing more"
        return f"the object store ({other[1]}) says: {said}. Look at the address and at what the environment says of keys"
    if not any(mark in text for mark in _MARKS):
        return None
    code, message = _code_and_message(text)
    bucket = next((name for match in _BUCKET.finditer(text) for name in match.groups() if name), None)
    plain = code.upper().replace("_", "")
    if plain == "NOSUCHBUCKET":
        return (
            f"there is no bucket {bucket or 'of that name'} in the object store: create it, or name another"
        )
    if plain in _KEYS:
        return (
            f"the object store refuses the keys ({code}{f': {message}' if message else ''}): say others in [pipeline.NAME.storage] or the"
            " environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), or allow these to read, write, list and delete there"
        )
    if plain in _BUSY:
        return (
            f"{BUSY} ({code}) for longer than patience_seconds of [pipeline.NAME.storage]. Nothing of this batch"
            " was committed; run the job again when the store has room, or with fewer tasks"
        )
    if (not code and _UNREACHED.search(text)) or plain == "NETWORKCONNECTION":
        return f"the object store does not answer ({_way(text)}): say where it is with endpoint in [pipeline.NAME.storage] or AWS_ENDPOINT_URL"
    return f"the object store says {code}: {message}" if code and message else None


def _code_and_message(text: str) -> tuple[str, str]:
    found, message = _CODE.search(text), _MESSAGE.search(text)
    if found is not None:
        return found[1], _one_line(message[1]) if message else ""
    arrow = _ARROW.search(text)
    if arrow is not None:
        said = re.sub(r"\s*\(Request ID:.*", "", arrow[2])
        return _status_in(said) or arrow[1], _one_line(said)
    status = _STATUS.search(text)
    return (status[1], "") if status else ("", "")


def _status_in(said: str) -> str | None:
    """Arrow calls UNKNOWN what its SDK has no name for; the number is behind it."""
    found = re.search(r"HTTP (?:response code|status)\D{0,5}(\d{3})", said, re.IGNORECASE)
    return found[1] if found else None


def _way(text: str) -> str:
    url = re.search(r"https?://[^/\s]+", text)
    reasons = (
        "Connection refused",
        "dns error",
        "timed out",
        "Could not connect to server",
        "Could not resolve host",
    )
    why = next((each for each in reasons if each.lower() in text.lower()), "")
    return ", ".join(each for each in (url[0] if url else "", why) if each) or "no connection"


def _one_line(text: str) -> str:
    return " ".join(text.split()).rstrip(".")
