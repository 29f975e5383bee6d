"""What the entries of all batches have in common: how many, how they are named, and how one that is refused is answered."""

import re
from collections.abc import Sequence
from typing import Final, Protocol

from ropewalk.base.errors import RopewalkError
from ropewalk.sqs.errors import (
    BATCH_ENTRY_IDS_NOT_DISTINCT,
    EMPTY_BATCH_REQUEST,
    INVALID_BATCH_ENTRY_ID,
    RECEIPT_HANDLE_IS_INVALID,
    TOO_MANY_ENTRIES,
    SqsRefusal,
    fault_of,
    missing,
    text_of,
)
from ropewalk.sqs.shapes import Output

ENTRIES_MAX: Final = 10
_ENTRY_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,80}")


class Entry(Protocol):
    @property
    def id(self) -> str: ...


class FailedEntry(Output, frozen=True, kw_only=True):
    id: str
    sender_fault: bool
    code: str
    message: str | None = None


def check(entries: Sequence[Entry], *, kind: str) -> None:
    """`kind` is what an entry is called. Raises `SqsRefusal`."""
    if not entries:
        raise SqsRefusal(EMPTY_BATCH_REQUEST, f"There should be at least one {kind} in the request.")
    if len(entries) > ENTRIES_MAX:
        text = f"Maximum number of entries per request are {ENTRIES_MAX}. You have sent {len(entries)}."
        raise SqsRefusal(TOO_MANY_ENTRIES, text)
    ids = [entry.id for entry in entries]
    if len(set(ids)) < len(ids) or not all(map(_ENTRY_ID.fullmatch, ids)):
        raise _first_objection(ids, kind)


def _first_objection(ids: Sequence[str], kind: str) -> SqsRefusal:
    for number, entry_id in enumerate(ids):
        if not entry_id:
            return missing(f"{kind}.{number + 1}.Id")
        if _ENTRY_ID.fullmatch(entry_id) is None:
            return SqsRefusal(INVALID_BATCH_ENTRY_ID)
        if entry_id in ids[:number]:
            break
    return SqsRefusal(BATCH_ENTRY_IDS_NOT_DISTINCT, f"Id {entry_id} repeated.")


def failed(entry_id: str, error: RopewalkError, *, handle: str = "") -> FailedEntry:
    """`handle` is the entry's receipt handle, which is named where it cannot be read."""
    fault = fault_of(error)
    text = text_of(error, fault)
    if fault is RECEIPT_HANDLE_IS_INVALID:
        text = f'The input receipt handle "{handle[:200]}" is not a valid receipt handle.'
    return FailedEntry(id=entry_id, sender_fault=fault.is_senders, code=fault.query_code, message=text)
