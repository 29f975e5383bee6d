"""Processes under supervision: real ones, small ones."""

import asyncio
import io
import os
import select
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from ropewalk.local.console import LINE_BYTES_MAX, Console, Lines
from ropewalk.local.errors import DidNotStart
from ropewalk.local.supervisor import Seat, Supervisor

PATIENCE_S = 30


def shell(name: str, script: str) -> Seat:
    return Seat(name, ("sh", "-c", script))


def supervised(story: Callable[[Supervisor], Awaitable[None]], *, restarts: bool = False) -> str:
    """What the console showed."""
    shown = io.BytesIO()

    async def main() -> None:
        supervisor = Supervisor(Console(shown), os.environ, restarts=restarts)
        async with asyncio.timeout(PATIENCE_S), supervisor.running():
            await story(supervisor)

    asyncio.run(main())
    return shown.getvalue().decode()


def test_every_line_says_whose_it_is() -> None:
    async def story(supervisor: Supervisor) -> None:
        seat = shell("a", "echo ready; echo more; echo trouble >&2; printf end >&2")
        await supervisor.start(seat)
        assert await supervisor.said(seat) == "ready"
        await seat.gone.wait()

    lines = supervised(story).splitlines()
    assert sorted(lines[:3]) == ["a | end", "a | more", "a | trouble"]
    assert lines[3].startswith("ropewalk: a ended with exit code 0; to start it again: sh -c 'echo ready")


def test_json_stays_json() -> None:
    shown = io.BytesIO()
    console = Console(shown)
    console.show("a", b'{"event":"x"}')
    console.show("a", b"{}")
    console.say("done")
    assert shown.getvalue() == b'{"from":"a","event":"x"}\na | {}\nropewalk: done\n'


def test_a_line_without_end_is_shown_in_pieces() -> None:
    lines = Lines()
    assert lines.feed(b"a\nb") == [b"a"]
    assert lines.feed(b"c\n\n") == [b"bc", b""]
    assert lines.feed(b"x" * LINE_BYTES_MAX) == []
    assert [len(line) for line in lines.feed(b"y")] == [LINE_BYTES_MAX + 1]
    assert lines.feed(b"z") == []
    assert lines.feed(b"") == [b"z"]


def test_a_process_that_does_not_start_says_why() -> None:
    async def story(supervisor: Supervisor) -> None:
        seat = shell("a", "echo 'ropewalk: the port is taken' >&2; exit 3")
        await supervisor.start(seat)
        with pytest.raises(DidNotStart, match="a ended with exit code 3: the port is taken"):
            await supervisor.said(seat)

    supervised(story)


def test_a_program_that_is_not_there_is_named() -> None:
    async def story(supervisor: Supervisor) -> None:
        with pytest.raises(DidNotStart, match="a: cannot run /no/such: No such file"):
            await supervisor.start(Seat("a", ("/no/such",)))

    supervised(story)


def test_processes_are_stopped_one_after_the_other() -> None:
    order: list[str] = []

    def note(name: str, _ended: asyncio.Future[int]) -> None:
        order.append(name)

    async def story(supervisor: Supervisor) -> None:
        seats = [
            shell(name, "sleep 1000 & trap 'kill $!; exit 0' TERM; echo ready; wait")
            for name in ("a", "b", "c")
        ]
        for seat in seats:
            await supervisor.start(seat)
            await supervisor.said(seat)
            assert seat.child is not None
            seat.child.ended.add_done_callback(partial(note, seat.name))
        await supervisor.stop([seats[2], seats[0], seats[1]])
        assert all(seat.child is not None and seat.child.ended.result() == 0 for seat in seats)

    assert supervised(story) == ""
    assert order == ["c", "a", "b"]


def test_one_that_is_killed_is_reported_and_the_others_go_on() -> None:
    async def story(supervisor: Supervisor) -> None:
        killed, other = shell("a", "exec sleep 1000"), shell("b", "echo ready; exec sleep 1000")
        for seat in (killed, other):
            await supervisor.start(seat)
        assert killed.child is not None
        killed.child.signal(signal.SIGKILL)
        await killed.gone.wait()
        supervisor.check_alive(other)

    assert "a was ended by SIGKILL; to start it again: sh -c 'exec sleep 1000'" in supervised(story)


def test_one_that_is_killed_is_started_again_where_that_is_wanted() -> None:
    async def story(supervisor: Supervisor) -> None:
        seat = shell("a", "echo ready; exec sleep 1000")
        await supervisor.start(seat)
        await supervisor.said(seat)
        first = seat.child
        assert first is not None
        first.signal(signal.SIGKILL)
        while seat.child is first:
            await asyncio.sleep(0.01)
        assert await supervisor.said(seat) == "ready"

    assert "a was ended by SIGKILL; it is started again" in supervised(story, restarts=True)


_ORPHAN_MAKER = """
import asyncio, os, sys
from ropewalk.local.console import Console
from ropewalk.local.supervisor import Seat, Supervisor

async def main():
    supervisor = Supervisor(Console(sys.stderr.buffer), os.environ, restarts=False)
    async with supervisor.running():
        seat = Seat("a", ("sh", "-c", "echo ready; exec sleep 1000"))
        await supervisor.start(seat)
        await supervisor.said(seat)
        print(seat.child.pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent is gone")
def test_no_process_outlives_a_supervisor_that_is_killed() -> None:
    supervisor = subprocess.Popen([sys.executable, "-c", _ORPHAN_MAKER], stdout=subprocess.PIPE, text=True)
    assert supervisor.stdout is not None
    descriptor = os.pidfd_open(int(supervisor.stdout.readline()))
    supervisor.kill()
    supervisor.wait()
    try:
        # Readable when the process has ended.
        assert select.select([descriptor], [], [], PATIENCE_S)[0], "the child lives on"
    finally:
        os.close(descriptor)
