"""Changes as events for whoever reads audits: one JSON object each, its fields by the Open Cybersecurity Schema Framework (OCSF).

`docs/reference/audit-events.md` has the fields.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ropewalk.base.version import VERSION
from ropewalk.metadata.records import ChangeDetail, ChangeMade

OCSF_VERSION: Final = "1.1.0"
API_ACTIVITY: Final = 6003
BASE_EVENT: Final = 0
_CREATE, _UPDATE, _DELETE, _OTHER = 1, 3, 4, 99
_ACTIVITIES: Final = {_CREATE: "Create", _UPDATE: "Update", _DELETE: "Delete", _OTHER: "Other"}
_INFORMATIONAL: Final = 1
_HIGH: Final = 4

_ENCODER: Final = msgspec.json.Encoder()


def change_event(change: ChangeMade, previous: str) -> bytes:
    """As it is kept; `previous` is the hash of the event before it."""
    kind, _, name = change.principal.partition(":")
    activity = _activity(change.details)
    event: dict[str, Any] = {
        **head(API_ACTIVITY, "API Activity", activity, _ACTIVITIES[activity], change.at_ms, _INFORMATIONAL),
        "status_id": 1,
        "status": "Success",
        "metadata": metadata_of(change.number, None if change.offset is None else str(change.offset)),
        "actor": {"user": {"name": name, "type": kind, "groups": [{"name": each} for each in change.groups]}},
        "src_endpoint": {"ip": change.host, "interface_name": change.listener},
        "api": {"operation": change.operation},
        "resources": [
            {
                "type": detail.kind,
                "name": detail.resource,
                "data": {"before": detail.before, "after": detail.after},
            }
            for detail in change.details
        ],
        "unmapped": {
            "authentication": change.method,
            "client_id": change.client_id,
            "forwarded_by": change.forwarded_by,
            "more_count": change.more_count,
        },
        "previous": previous,
    }
    return encoded(event)


def gap_event(first: int, last: int, *, at_ms: int, previous: str) -> bytes:
    """Changes that the metadata no longer told when they could be copied."""
    event: dict[str, Any] = {
        **head(BASE_EVENT, "Base Event", _OTHER, _ACTIVITIES[_OTHER], at_ms, _HIGH),
        "metadata": metadata_of(last, None),
        "message": f"changes {first} to {last} are missing: more were made than are kept while this topic could not be written",
        "unmapped": {"missing_from": first, "missing_to": last},
        "previous": previous,
    }
    return encoded(event)


def encoded(event: dict[str, Any]) -> bytes:
    return _ENCODER.encode(event)


def head(
    class_uid: int, name: str, activity: int, activity_name: str, at_ms: int, severity: int
) -> dict[str, Any]:
    return {
        "class_uid": class_uid,
        "class_name": name,
        "category_uid": class_uid // 1000,
        "activity_id": activity,
        "activity_name": activity_name,
        "type_uid": class_uid * 100 + activity,
        "severity_id": severity,
        "time": at_ms,
    }


def metadata_of(number: int, uid: str | None) -> dict[str, Any]:
    product = {"name": "Ropewalk", "vendor_name": "Ropewalk", "version": VERSION}
    return {"version": OCSF_VERSION, "uid": uid, "sequence": number, "product": product}


def _activity(details: Sequence[ChangeDetail]) -> int:
    """By the first thing that is told."""
    if not details:
        return _OTHER
    first = details[0]
    if first.kind.endswith((".deleted", ".removed")) or (first.after is None and first.before is not None):
        return _DELETE
    if first.kind.endswith(".created") or first.before is None:
        return _CREATE
    return _UPDATE
