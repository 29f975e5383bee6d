"""What an etcd cluster agrees on: keys with revisions, their history, leases. One object stands for the consensus.

It takes and gives the messages of etcd's gateway, so that what the metadata log says to it is what it says to etcd. Only
what the log needs is there, with etcd's own refusals: a key written twice in one transaction, a request that is too large,
a history that was compacted, a store that is full.

What a reader could get wrong
    etcd looks whether it is full twice. Before a request is proposed, or once the alarm is raised, nothing is done. What was on its way
    when it ran full is carried out, and refused in the same words. It stays full until somebody makes room.
"""

from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

Body: TypeAlias = dict[str, object]

REQUEST_BYTES_MAX: Final = 1_572_864
OPERATIONS_MAX: Final = 128


class Refusal(Exception):
    """etcd says no. `code` is gRPC's, `status` HTTP's."""

    def __init__(self, code: int, status: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


class Kept(Struct, frozen=True):
    value: bytes
    create_revision: int
    mod_revision: int
    version: int
    lease: int


class Change(Struct, frozen=True):
    revision: int
    key: bytes
    kept: Kept | None
    """None: deleted."""


class Copy(Struct, frozen=True):
    revision: int
    keys: dict[bytes, Kept]


class EtcdState:
    def __init__(self) -> None:
        self.revision = 1
        self.keys: dict[bytes, Kept] = {}
        self.history: list[Change] = []
        self.compacted = 0
        self.is_full = False
        self.on_its_way_count = 0
        """Writes that are carried out all the same once it is full, and refused."""
        self.leases: dict[int, tuple[float, float]] = {}
        """Ends at, and lasts, in seconds."""
        self._lease_next = 1000

    def txn(self, request: Mapping[str, object]) -> Body:
        holds = all(self._compare(comparison) for comparison in _bodies(request.get("compare")))
        operations = _bodies(request.get("success" if holds else "failure"))
        self._check(_bodies(request.get("success")))
        self._check(_bodies(request.get("failure")))
        # By what it may come to cost, whatever is compared.
        both = [*_bodies(request.get("success")), *_bodies(request.get("failure"))]
        is_refused = any("request_put" in operation for operation in both) and self._refuses()
        before = len(self.history)
        revision = self.revision + 1
        responses = [self._operate(operation, revision) for operation in operations]
        if len(self.history) > before:
            self.revision = revision
        answer: Body = {"header": {"revision": str(self.revision)}, "responses": responses}
        if holds:
            answer["succeeded"] = True
        if is_refused:
            raise _no_space()
        return answer

    def fill(self, on_its_way_count: int) -> None:
        self.is_full, self.on_its_way_count = True, on_its_way_count

    def make_room(self) -> None:
        self.is_full, self.on_its_way_count = False, 0

    def copy(self) -> "Copy":
        """As an operator may take one. Leases are not worth keeping: theirs have long run out when it is put back."""
        return Copy(self.revision, dict(self.keys))

    def put_back(self, copy: "Copy") -> None:
        """What was written since is no more, and revisions are given again."""
        self.revision, self.compacted = copy.revision, copy.revision
        self.keys = {key: kept for key, kept in copy.keys.items() if not kept.lease}
        self.history.clear()
        self.leases.clear()

    def _refuses(self) -> bool:
        """Whether what is asked for is refused after it was done. Raises where it is before."""
        if not self.is_full:
            return False
        if self.on_its_way_count == 0:
            raise _no_space()
        self.on_its_way_count -= 1
        return True

    def compact(self, revision: int) -> Body:
        if revision <= self.compacted:
            raise Refusal(11, 400, "etcdserver: mvcc: required revision has been compacted")
        if revision > self.revision:
            raise Refusal(11, 400, "etcdserver: mvcc: required revision is a future revision")
        self.compacted = revision
        self.history = [change for change in self.history if change.revision > revision]
        return {"header": {"revision": str(self.revision)}}

    def grant(self, ttl_s: float, now_s: float) -> Body:
        if self.is_full:  # to be kept, a lease takes room as well
            raise _no_space()
        self._lease_next += 1
        self.leases[self._lease_next] = (now_s + ttl_s, ttl_s)
        return {"ID": str(self._lease_next), "TTL": str(int(ttl_s))}

    def keep_alive(self, lease: int, now_s: float) -> Body:
        if lease not in self.leases:
            return {"result": {"ID": str(lease)}}
        _, ttl_s = self.leases[lease]
        self.leases[lease] = (now_s + ttl_s, ttl_s)
        return {"result": {"ID": str(lease), "TTL": str(int(ttl_s))}}

    def expire(self, lease: int) -> None:
        """The lease ends, and with it whatever is kept under it."""
        self.leases.pop(lease, None)
        under = [key for key, kept in self.keys.items() if kept.lease == lease]
        if under:
            self.revision += 1
            for key in under:
                self._remove(key, self.revision)

    def changes_since(self, revision: int, key: bytes, end: bytes) -> Iterator[Change]:
        return (change for change in self.history if change.revision >= revision and key <= change.key < end)

    def _check(self, operations: Sequence[Body]) -> None:
        if len(operations) > OPERATIONS_MAX:
            raise Refusal(3, 400, "etcdserver: too many operations in txn request")
        written: set[bytes] = set()
        for operation in operations:
            if "request_put" in operation:
                request = _body(operation["request_put"])
                key = _bytes(request["key"])
                if key in written:
                    raise Refusal(3, 400, "etcdserver: duplicate key given in txn request")
                written.add(key)
                lease = _number(request.get("lease"))
                if lease and lease not in self.leases:
                    raise Refusal(5, 404, "etcdserver: requested lease not found")

    def _compare(self, comparison: Body) -> bool:
        kept = self.keys.get(_bytes(comparison["key"]))
        assert comparison["result"] == "EQUAL", "the log asks for nothing else"
        match comparison["target"]:
            case "MOD":
                return (kept.mod_revision if kept else 0) == _number(comparison.get("mod_revision"))
            case "VALUE":
                return kept is not None and kept.value == _bytes(comparison["value"])
            case target:
                raise AssertionError(f"the log does not compare {target}")

    def _operate(self, operation: Body, revision: int) -> Body:
        match operation:
            case {"request_range": request}:
                return {"response_range": self._range(_body(request))}
            case {"request_put": request}:
                self._put(_body(request), revision)
                return {"response_put": {}}
            case {"request_delete_range": request}:
                key, end = _bytes(_body(request)["key"]), _bytes(_body(request)["range_end"])
                for gone in [other for other in self.keys if key <= other < end]:
                    self._remove(gone, revision)
                return {"response_delete_range": {}}
            case _:
                raise AssertionError(f"the log does not ask for {operation}")

    def _range(self, request: Body) -> Body:
        key = _bytes(request["key"])
        if "range_end" not in request:
            found = [key] if key in self.keys else []
        else:
            end = _bytes(request["range_end"])
            found = sorted(other for other in self.keys if key <= other < end)
        limit = _number(request.get("limit"))
        shown = found[:limit] if limit else found
        answer: Body = {
            "kvs": [as_message(other, self.keys[other]) for other in shown],
            "count": str(len(found)),
        }
        if len(shown) < len(found):
            answer["more"] = True
        return answer

    def _put(self, request: Body, revision: int) -> None:
        key = _bytes(request["key"])
        former = self.keys.get(key)
        kept = Kept(
            value=_bytes(request["value"]),
            create_revision=former.create_revision if former else revision,
            mod_revision=revision,
            version=former.version + 1 if former else 1,
            lease=_number(request.get("lease")),
        )
        self.keys[key] = kept
        self.history.append(Change(revision, key, kept))

    def _remove(self, key: bytes, revision: int) -> None:
        del self.keys[key]
        self.history.append(Change(revision, key, None))


def _no_space() -> Refusal:
    return Refusal(8, 429, "etcdserver: mvcc: database space exceeded")


def as_message(key: bytes, kept: Kept) -> Body:
    return {
        "key": key,
        "value": kept.value,
        "create_revision": str(kept.create_revision),
        "mod_revision": str(kept.mod_revision),
        "version": str(kept.version),
    }


def as_event(change: Change) -> Body:
    if change.kept is None:
        return {"type": "DELETE", "kv": {"key": change.key, "mod_revision": str(change.revision)}}
    return {"kv": as_message(change.key, change.kept)}


def _body(value: object) -> Body:
    assert isinstance(value, dict)
    return value


def _bodies(value: object) -> list[Body]:
    assert value is None or isinstance(value, list)
    return value or []


def _bytes(value: object) -> bytes:
    assert isinstance(value, str)
    return b64decode(value)


def _number(value: object) -> int:
    assert value is None or isinstance(value, int | str)
    return int(value or 0)
