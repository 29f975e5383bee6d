"""What only a real etcd can show: answers that are cut off, no space, passwords, TLS."""

import asyncio
import base64
import json
import random
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path

import pytest

from ropewalk.base.errors import MetadataUnavailable
from ropewalk.base.ids import NodeId, ProducerId
from ropewalk.metadata.etcd.client import Access, parse_members
from ropewalk.metadata.etcd.log import EtcdMetadataLog
from ropewalk.metadata.log import AppendOutcome, Committed, Snapshot, Unknown
from ropewalk.metadata.records import MetadataRecord, ProducerIdsAllocated
from ropewalk.runtime.network import TcpNetwork
from tests.metadata.cutting_proxy import CuttingProxy, Mood
from tests.metadata.etcd_homes import RealClock
from tests.metadata.etcd_members import EtcdMembers

pytestmark = pytest.mark.compat

PREFIX = "/real/"
QUOTA_BYTES = 16 << 20


@pytest.fixture
def member(tmp_path: Path) -> Iterator[EtcdMembers]:
    member = EtcdMembers(tmp_path, "--quota-backend-bytes", str(QUOTA_BYTES), member_count=1)
    yield member
    member.stop()


def fact(number: int) -> MetadataRecord:
    return ProducerIdsAllocated(NodeId(0), ProducerId(number))


async def opened(access: Access) -> EtcdMetadataLog:
    return await EtcdMetadataLog.open(TcpNetwork(), RealClock(), random.Random(), access, prefix=PREFIX)


async def append(log: EtcdMetadataLog, *records: MetadataRecord) -> AppendOutcome:
    return await log.append(records, expected_epoch=log.epoch, expected_end_offset=log.end_offset)


def run(story: Callable[[], Coroutine[object, object, None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(60):
            await story()

    asyncio.run(main())


def call(url: str, path: str, **request: object) -> dict[str, object]:
    """As an operator would, beside the log."""
    data = json.dumps(request).encode()
    answer = urllib.request.urlopen(urllib.request.Request(url + path, data), timeout=10).read()
    return dict(json.loads(answer))


def text(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


@pytest.mark.parametrize("mood", [Mood.CUTS, Mood.SWALLOWS])
def test_an_append_whose_answer_never_came_is_unknown_and_found_by_reading(
    member: EtcdMembers, mood: Mood
) -> None:
    async def story() -> None:
        proxy = CuttingProxy(member.client_ports[0])
        log = await opened(Access(parse_members([await proxy.start()])))
        assert await log.take_over(NodeId(0), expected_epoch=0) == 1
        assert await append(log, fact(1)) == Committed(1)
        proxy.mood = mood
        assert isinstance(await append(log, fact(2)), Unknown)
        proxy.mood = Mood.HONEST
        assert await log.tail(0) == (fact(1), fact(2)), "it had been done"
        assert await append(log, fact(3)) == Committed(3)
        log.close()
        await proxy.stop()

    run(story)


def test_a_take_over_whose_answer_never_came_is_known_by_its_nonce(member: EtcdMembers) -> None:
    async def story() -> None:
        proxy = CuttingProxy(member.client_ports[0])
        behind, straight = await proxy.start(), member.urls[0]
        log = await opened(Access(parse_members([behind, straight])))

        async def cut_when_the_lease_is_granted() -> None:
            granted = log._store.grant

            async def grant() -> int:
                lease = await granted()
                proxy.mood = Mood.CUTS
                return lease

            log._store.grant = grant  # type: ignore[method-assign]

        await cut_when_the_lease_is_granted()
        assert await log.take_over(NodeId(0), expected_epoch=0) == 1
        assert await append(log, fact(1)) == Committed(1)
        log.close()
        await proxy.stop()

    run(story)


def test_without_space_nothing_changes_and_everything_can_be_read(member: EtcdMembers) -> None:
    url = member.urls[0]

    async def story() -> None:
        log = await opened(Access(parse_members([url])))
        listening = asyncio.get_running_loop().create_task(log.run())
        assert await log.take_over(NodeId(0), expected_epoch=0) == 1
        assert await append(log, fact(1)) == Committed(1)
        _fill(url)
        with pytest.raises(MetadataUnavailable, match="no space left"):
            await append(log, fact(2))
        with pytest.raises(MetadataUnavailable, match="no space left"):
            await log.write_snapshot(Snapshot(1, 1, (fact(1),)))
        assert "no space" in str(log.trouble)
        assert await log.tail(0) == (fact(1),)
        _make_room(url)
        while log.trouble is not None:
            await asyncio.sleep(0.05)
        assert await append(log, fact(3)) == Committed(2)
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        log.close()

    run(story)


def test_in_a_shared_etcd_snapshots_forget_what_others_had_and_nothing_that_they_have(
    member: EtcdMembers,
) -> None:
    """etcd has one history for everybody: who compacts it compacts that of all keys. What is kept now is not touched."""
    url = member.urls[0]

    async def story() -> None:
        first = call(url, "/v3/kv/put", key=text("theirs"), value=text("before"))
        call(url, "/v3/kv/put", key=text("theirs"), value=text("now"))
        header = first["header"]
        assert isinstance(header, dict)
        log = await opened(Access(parse_members([url])))
        assert await log.take_over(NodeId(0), expected_epoch=0) == 1
        for number in range(1, 4):
            assert await append(log, fact(number)) == Committed(number)
            await log.write_snapshot(Snapshot(1, number, tuple(map(fact, range(1, number + 1)))))
        log.close()
        found = call(url, "/v3/kv/range", key=text("theirs"))["kvs"]
        assert isinstance(found, list)
        (kept,) = found
        assert base64.b64decode(kept["value"]) == b"now"
        with pytest.raises(urllib.error.HTTPError) as refused:
            call(url, "/v3/kv/range", key=text("theirs"), revision=header["revision"])
        assert b"compacted" in refused.value.read()

    run(story)


def _fill(url: str) -> None:
    """With what belongs to somebody else."""
    junk = text("x" * 1_000_000)

    def put_all() -> None:
        for number in range(QUOTA_BYTES // 500_000):
            call(url, "/v3/kv/put", key=text(f"junk-{number}"), value=junk)

    with pytest.raises(urllib.error.HTTPError) as refused:
        put_all()
    assert b"database space exceeded" in refused.value.read()


def _make_room(url: str) -> None:
    call(url, "/v3/kv/deleterange", key=text("junk"), range_end=text("junl"))
    answer = call(url, "/v3/kv/range", key=text("a"))
    header = answer["header"]
    assert isinstance(header, dict)
    call(url, "/v3/kv/compaction", revision=header["revision"], physical=True)
    call(url, "/v3/maintenance/defragment")
    call(url, "/v3/maintenance/alarm", action="DEACTIVATE", memberID=header["member_id"], alarm="NOSPACE")


def test_a_user_with_rights_on_the_prefix_alone_is_enough(member: EtcdMembers) -> None:
    url = member.urls[0]
    call(url, "/v3/auth/user/add", name="root", password="of-all")
    call(url, "/v3/auth/user/grant", user="root", role="root")
    call(url, "/v3/auth/role/add", name="ropewalk")
    permission = {"permType": "READWRITE", "key": text(PREFIX), "range_end": text(PREFIX + "~")}
    call(url, "/v3/auth/role/grant", name="ropewalk", perm=permission)
    call(url, "/v3/auth/user/add", name="walker", password="rope")
    call(url, "/v3/auth/user/grant", user="walker", role="ropewalk")
    call(url, "/v3/auth/enable")

    async def story() -> None:
        members = parse_members([url])
        for access in (Access(members), Access(members, user="walker", password="wrong")):
            with pytest.raises(MetadataUnavailable, match=r"user name is empty|authentication failed"):
                await opened(access)
        log = await opened(Access(members, user="walker", password="rope"))
        other = await opened(Access(members, user="walker", password="rope"))
        listening = asyncio.get_running_loop().create_task(other.run())
        assert await log.take_over(NodeId(0), expected_epoch=0) == 1
        for number in range(3):
            assert await append(log, fact(number)) == Committed(number + 1)
            await log.write_snapshot(Snapshot(1, number + 1, (fact(number),)))
        log._store.client._token = "one.that-etcd-has-forgotten"
        assert await append(log, fact(3)) == Committed(4)
        while other.end_offset < 4:
            await other.news(end_offset=other.end_offset, holder_epoch=1, timeout_ms=10_000)
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        log.close()
        other.close()

    run(story)


def test_both_sides_may_prove_themselves_with_certificates(tmp_path: Path) -> None:
    _make_certificates(tmp_path)
    member = EtcdMembers(
        tmp_path,
        *("--cert-file", str(tmp_path / "etcd.pem"), "--key-file", str(tmp_path / "etcd.key")),
        *("--client-cert-auth", "--trusted-ca-file", str(tmp_path / "ca.pem")),
        member_count=1,
        scheme="https",
    )
    authority = str(tmp_path / "ca.pem")
    known = ssl.create_default_context(cafile=authority)
    known.load_cert_chain(tmp_path / "etcd.pem", tmp_path / "etcd.key")
    members = parse_members(member.urls)

    async def story() -> None:
        while True:
            try:
                log = await opened(Access(members, tls=lambda: known))
                break
            except MetadataUnavailable:
                await asyncio.sleep(0.05)
        assert await log.take_over(NodeId(0), expected_epoch=0) == 1
        assert await append(log, fact(1)) == Committed(1)
        with pytest.raises(MetadataUnavailable, match="certificate verify failed"):
            await opened(Access(members, tls=ssl.create_default_context))
        with pytest.raises(MetadataUnavailable):
            await opened(Access(members, tls=lambda: ssl.create_default_context(cafile=authority)))
        log.close()

    try:
        run(story)
    finally:
        member.stop()


def _make_certificates(directory: Path) -> None:
    """An authority, and a certificate for the loopback that serves both sides."""

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=directory, check=True, capture_output=True)

    new = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl(*new, "-x509", "-days", "2", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem")
    openssl(*new, "-subj", "/CN=etcd", "-keyout", "etcd.key", "-out", "etcd.csr")
    (directory / "names").write_text("subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n")
    openssl(
        *("x509", "-req", "-in", "etcd.csr", "-days", "2", "-out", "etcd.pem", "-extfile", "names"),
        *("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"),
    )
