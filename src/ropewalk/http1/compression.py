"""Answers in gzip, for those who take it.

What a reader could get wrong
    Streams go as they are: an event that waits in a compressor is an event that nobody sees.
    A page is compressed in pieces, with turns of the event loop between them.
    Where an answer has a secret and something that its reader chose, its length tells of the secret. Secrets on pages are masked, each time
    otherwise, by whoever writes them there.
"""

import zlib
from typing import Final

from ropewalk.base.limits import HTTP_COMPRESSED_BYTES_MIN, HTTP_COMPRESSED_BYTES_PER_TURN
from ropewalk.http1.message import Answer, Handle, Request, StreamedAnswer, Visitor
from ropewalk.runtime.steps import turn

_LEVEL: Final = 5
_GZIP: Final = 16 + zlib.MAX_WBITS
_TEXTS: Final = ("text/", "application/json", "application/javascript", "image/svg+xml")


def takes_gzip(request: Request) -> bool:
    for offer in request.headers.get("accept-encoding", "").lower().split(","):
        coding, _, weight = offer.partition(";")
        if coding.strip() in ("gzip", "*"):
            return weight.strip().removeprefix("q=").strip("0.") != "" or not weight
    return False


def compress(data: bytes) -> bytes:
    compressor = zlib.compressobj(_LEVEL, wbits=_GZIP)
    return compressor.compress(data) + compressor.flush()


def compressed(handle: Handle) -> Handle:
    """As `handle`, in gzip where that is wanted and worth it."""

    async def answer(request: Request, visitor: Visitor) -> Answer | StreamedAnswer:
        made = await handle(request, visitor)
        if not isinstance(made, Answer) or not _is_worth_it(made):
            return made
        headers = (*made.headers, ("vary", "accept-encoding"))
        chunks = made.chunks
        if takes_gzip(request):
            headers = (*headers, ("content-encoding", "gzip"))
            chunks = await _compress_in_turns(b"".join(chunks))
        return Answer(made.status, chunks, made.content_type, headers, made.cache)

    return answer


def _is_worth_it(answer: Answer) -> bool:
    return (
        answer.content_type.startswith(_TEXTS)
        and sum(map(len, answer.chunks)) >= HTTP_COMPRESSED_BYTES_MIN
        and not any(name == "content-encoding" for name, _ in answer.headers)
    )


async def _compress_in_turns(data: bytes) -> list[bytes]:
    compressor, chunks = zlib.compressobj(_LEVEL, wbits=_GZIP), []
    step = HTTP_COMPRESSED_BYTES_PER_TURN
    for start in range(0, len(data), step):
        if start:
            await turn()
        chunks.append(compressor.compress(data[start : start + step]))
    chunks.append(compressor.flush())
    return chunks
