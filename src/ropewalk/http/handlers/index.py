"""The front page: what there is. Who comes with a browser is led to the console, if there is one."""

from http import HTTPStatus
from typing import Final

from ropewalk.http1.message import Answer, Request, text_answer

_TEXT: Final = """\
ropewalk

/metrics          all figures, in Prometheus's text format
/public_metrics   the same without those that have a line for every partition
/livez            whether the process works
/readyz           whether clients can be sent here
/healthz          whether all is well; /healthz?verbose says what was checked, and so do the two above
/cluster/healthz  whether all is well in the whole cluster
/debug/journal    the latest lines of the journal, for the node's own people, as the next two
/debug/stacks     where every task and thread stands
/debug/settings   what the node's configuration says, without secrets"""


async def handle(request: Request, *, front: str | None) -> Answer:
    if front is None:
        return text_answer(HTTPStatus.OK, _TEXT)
    if "text/html" in request.headers.get("accept", ""):
        return Answer(HTTPStatus.SEE_OTHER, headers=(("location", front),))
    return text_answer(HTTPStatus.OK, f"{_TEXT}\n{front:<16}  the console, for browsers")
