"""The certificates that a node shows to etcd are replaced while it runs."""

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from structlog.testing import capture_logs

from ropewalk.base.errors import InvalidSetting
from ropewalk.node.config import load
from ropewalk.node.etcd_contexts import EtcdContexts, read_etcd_contexts
from ropewalk.node.options import NodeOptions
from ropewalk.sim.machines.world import NodePorts, World
from tests.security.authority import authority
from tests.security.node_authority import put

OURS = authority()


class Site:
    def __init__(self, directory: Path) -> None:
        self.certificate = OURS.issue(directory / "node.pem", common_name="first")
        self.authorities = OURS.trust(directory / "ca.pem")
        self.next = OURS.issue(directory / "next.pem", common_name="second").read_bytes()
        etcd = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        etcd.load_cert_chain(OURS.issue(directory / "etcd.pem", "etcd"))
        etcd.load_verify_locations(self.authorities)
        etcd.verify_mode = ssl.CERT_REQUIRED
        self._etcd = etcd

    @property
    def settings(self) -> tuple[str, ...]:
        return (
            "cluster.secret=a secret of this cluster",
            "metadata.home=etcd",
            "metadata.etcd.endpoints=https://etcd:2379",
            f"metadata.etcd.ca={self.authorities}",
            f"metadata.etcd.cert={self.certificate}",
        )

    def shown_to_etcd(self, contexts: EtcdContexts) -> str:
        """The common name in the certificate of a connection that is made now."""
        there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
        caller = contexts().wrap_bio(back, there, server_hostname="etcd")
        answerer = self._etcd.wrap_bio(there, back, server_side=True)
        for _ in range(4):
            for end in (caller, answerer):
                with suppress(ssl.SSLWantReadError):
                    end.do_handshake()
        shown = answerer.getpeercert(binary_form=True)
        assert shown is not None
        subject = x509.load_der_x509_certificate(shown).subject
        return str(subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value)


def at_a_node(story: Callable[[NodePorts], Coroutine[Any, Any, None]]) -> None:
    async def main(world: World) -> None:
        await world.machine("node").start(story)

    with World(0) as world:
        world.run(main(world), limit_s=600)


def test_files_for_etcd_are_read_again_when_they_change(tmp_path: Path) -> None:
    site = Site(tmp_path)

    async def story(ports: NodePorts) -> None:
        contexts = await read_etcd_contexts(load(NodeOptions(settings=site.settings), {}), ports.pool)
        assert contexts is not None
        assert site.shown_to_etcd(contexts) == "first"
        watching = asyncio.ensure_future(contexts.run())
        with capture_logs() as logs:
            put(site.certificate, "no certificate")
            await asyncio.sleep(25)
            assert site.shown_to_etcd(contexts) == "first"
            put(site.certificate, site.next)
            await asyncio.sleep(11)
            assert site.shown_to_etcd(contexts) == "second"
            site.certificate.unlink()
            await asyncio.sleep(11)
            assert site.shown_to_etcd(contexts) == "second"
        watching.cancel()
        assert [each["event"] for each in logs] == [
            "certificates for etcd stay as they were",
            "certificates for etcd were read again",
            "certificates for etcd stay as they were",
        ]

    at_a_node(story)


def test_a_node_whose_files_for_etcd_cannot_be_used_does_not_start(tmp_path: Path) -> None:
    site = Site(tmp_path)
    put(site.certificate, "no certificate")

    async def story(ports: NodePorts) -> None:
        with pytest.raises(InvalidSetting, match=r"metadata\.etcd\.ca, \.cert or \.key cannot be used"):
            await read_etcd_contexts(load(NodeOptions(settings=site.settings), {}), ports.pool)

    at_a_node(story)
