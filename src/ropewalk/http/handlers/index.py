"""The front page: what there is."""

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
/cluster/healthz  whether all is well in the whole cluster"""


async def handle(_request: Request) -> Answer:
    return text_answer(HTTPStatus.OK, _TEXT)
