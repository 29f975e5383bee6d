"""An asyncio loop whose clock jumps and whose scheduling follows a seed.

When nothing is ready to run, real loops sleep until the next timer. This one moves its clock to that timer
and goes on. Ten simulated minutes cost what the callbacks cost, and the same seed gives the same run.

Behaviour worth knowing
    Task steps that are ready together run in an order drawn from the seed: nobody may rely on who of two
    woken tasks comes first. Plain callbacks keep their order, as the interface of asyncio promises.
    A callback belongs to the process in its context. When that process is dead, the callback is dropped; while it
    is paused, the callback waits.
    What `AbstractEventLoop` offers and this class does not define (real sockets, signals, subprocesses)
    raises `NotImplementedError`; threads and executors are refused by name.
    An error that nobody handles ends the run: in a simulation nothing fails quietly.
"""

import asyncio
import heapq
import random
from asyncio import events
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context, copy_context
from typing import Any, NoReturn, TypeVar, cast

from ropewalk.sim.machines.exertion import STEP_S, Exertion
from ropewalk.sim.machines.fence import RealWorldTouched, sealed
from ropewalk.sim.machines.network import Fabric, SimulatedServer
from ropewalk.sim.machines.process import CURRENT, PowerCut, Process
from ropewalk.sim.machines.trace import Trace

T = TypeVar("T")
ExceptionHandler = Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object]


class Stuck(Exception):
    """Every task waits and no timer is set: in production this is a hang."""


class Overtime(Exception):
    """The run passed the simulated time it was given."""


class Unhandled(Exception):
    """Something failed and nobody looked at the error."""


class SimulatedLoop(asyncio.AbstractEventLoop):
    def __init__(self, seed: int | str, *, trace: Trace | None = None) -> None:
        self.trace = trace or Trace()
        self.step_count = 0
        self._rng = random.Random(f"{seed}/schedule")
        self._now_s = 0.0
        self._ready: list[_Scheduled] = []
        self._held_back: dict[Process, list[_Scheduled]] = {}
        """What has become due in processes that are paused."""
        self._timers: list[tuple[float, int, _Scheduled]] = []
        self._timer_count = 0
        self._task_count = 0
        self.sorts_steps = False
        """Whether steps that are due together are put in the order of their names before they are shuffled. A task group
        cancels its tasks in the order of a set, so runs in which that happens need it to be the same each time."""
        self.exertion: Exertion | None = None
        """What looks at how much processes do."""
        self._running = False
        self._closed = False
        self._failure: Exception | None = None
        self._handlers: dict[Process | None, ExceptionHandler | None] = {}
        self._graveyard: list[asyncio.Task[object]] = []
        self.network = Fabric(self, random.Random(f"{seed}/network"), self.trace)

    def time(self) -> float:
        return self._now_s

    def call_soon(
        self, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.Handle:
        scheduled = _Scheduled(self._now_s, callback, args, self, context)
        self._ready.append(scheduled)
        return scheduled

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now_s + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.TimerHandle:
        scheduled = _Scheduled(when, callback, args, self, context)
        self._timer_count += 1  # ties are broken by the order of the calls
        heapq.heappush(self._timers, (when, self._timer_count, scheduled))
        return scheduled

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]  # newer Pythons add keywords that no caller here uses
        self,
        coro: Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        # The name goes into the trace; asyncio's own numbering goes on from run to run, this one does not.
        self._task_count += 1
        task = asyncio.Task(coro, loop=self, name=name or f"task-{self._task_count}", context=context)
        process = CURRENT.get() if context is None else context.get(CURRENT)
        if process is not None:
            process.tasks.add(task)
            if not process.alive:  # its last step goes on to its end, and nothing that it begins ever runs
                self.bury(task)
        return task

    def run_until_complete(self, future: Awaitable[T], *, limit_s: float | None = None) -> T:  # type: ignore[override]
        """Run until `future` is done; raise `Stuck` when it never will be, `Overtime` when it takes too long."""
        assert not self._running
        assert not self._closed
        main = asyncio.ensure_future(future, loop=self)
        self._running = True
        with sealed(self.fail):
            events._set_running_loop(self)
            try:
                while not main.done():
                    self._run_batch()
                    if limit_s is not None and self._now_s > limit_s:
                        raise Overtime(
                            f"{self._now_s:.3f} simulated seconds have passed, {limit_s} were given"
                        )
            finally:
                events._set_running_loop(None)
                self._running = False
                if not main.done():
                    self.bury(main)
        if self._failure is not None:
            raise self._failure
        return main.result()

    def _run_batch(self) -> None:
        """Everything that is ready at this instant, once; what that makes ready comes with the next batch."""
        if not self._ready:
            self._jump()
        while self._timers and self._timers[0][0] <= self._now_s:
            self._ready.append(heapq.heappop(self._timers)[2])
        batch, self._ready = self._ready, []
        for scheduled in self._permuted(batch):
            process = scheduled.process
            if scheduled.cancelled() or (process is not None and not process.alive):
                continue
            if process is not None and process.is_paused:
                self._held_back.setdefault(process, []).append(scheduled)
                continue
            self.step_count += 1
            self.trace.note(self._now_s, scheduled.label())
            exertion = self.exertion
            try:
                if exertion is not None and exertion.weighs_turns and process and not scheduled.is_pool_work:
                    exertion.weigh(scheduled._run, process, scheduled.work())
                    self._now_s += STEP_S
                else:
                    scheduled._run()
            except SystemExit as leaving:
                if process is None:
                    raise
                process.die(f"exited with {leaving.code}")
            except PowerCut:
                pass  # the process is dead and its world knows
            if self._failure is not None:
                raise self._failure

    def _jump(self) -> None:
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
        if not self._timers:
            raise Stuck("all tasks are waiting and nothing will wake them")
        self._now_s = max(self._now_s, self._timers[0][0])

    def _permuted(self, batch: "list[_Scheduled]") -> "list[_Scheduled]":
        slots = [index for index, scheduled in enumerate(batch) if scheduled.task is not None]
        if len(slots) > 1:
            steps = [batch[index] for index in slots]
            if self.sorts_steps:
                steps.sort(key=_Scheduled.label)
            self._rng.shuffle(steps)
            for index, step in zip(slots, steps, strict=True):
                batch[index] = step
        return batch

    def resume(self, process: Process) -> None:
        """Let a paused process go on with all that has become due meanwhile."""
        process.is_paused = False
        self._ready += self._held_back.pop(process, [])

    def bury(self, task: "asyncio.Task[Any] | asyncio.Future[Any]") -> None:
        """Keep a task that will never run again, so that its coroutine is not unwound in the middle of the run."""
        if isinstance(task, asyncio.Task):
            self._graveyard.append(task)

    def close(self) -> None:
        """Unwind what is left. Nothing that happens here is part of the run any more."""
        if self._closed:
            return
        self._closed = True
        self._ready.clear()
        self._held_back.clear()
        self._timers.clear()
        for task in [*self._graveyard, *asyncio.all_tasks(self)]:
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # asyncio's own gather does the same
            coroutine = task.get_coro()
            try:
                if coroutine is not None:
                    coroutine.close()
            except BaseException:  # noqa: BLE001, S110  # a dead process's last words interest nobody
                pass
        self._graveyard.clear()

    def get_exception_handler(self) -> ExceptionHandler | None:
        return self._handlers.get(CURRENT.get())

    def set_exception_handler(self, handler: ExceptionHandler | None) -> None:
        """Each process has its own, as it would have its own loop."""
        self._handlers[CURRENT.get()] = handler

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if self._closed:
            return
        handler = self.get_exception_handler()
        if handler is not None:
            handler(self, context)
        else:
            self.default_exception_handler(context)

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        cause = context.get("exception")
        if isinstance(cause, PowerCut):
            return
        failure = Unhandled(f"{context.get('message')}: {cause!r}")
        failure.__cause__ = cause
        self.fail(failure)

    def fail(self, failure: Exception) -> None:
        if self._failure is None:
            self._failure = failure

    def _refuse(self, what: str) -> NoReturn:
        error = RealWorldTouched(f"{what} inside a simulated run")
        self.fail(error)
        raise error

    def call_soon_threadsafe(self, *_: object, **__: object) -> NoReturn:
        self._refuse("a call from another thread")

    def run_in_executor(self, *_: object) -> NoReturn:
        self._refuse("an executor")

    def add_reader(self, *_: object) -> NoReturn:
        self._refuse("a real descriptor")

    def add_writer(self, *_: object) -> NoReturn:
        self._refuse("a real descriptor")

    async def create_server(  # type: ignore[override]  # only what an in-memory network can mean
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], host: str, port: int, **_: object
    ) -> SimulatedServer:
        return SimulatedServer(self, await self.network.here().listen(protocol_factory, host, port))

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], host: str, port: int, **_: object
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        transport, protocol = await self.network.here().connect(protocol_factory, host, port)
        return cast(asyncio.Transport, transport), protocol

    def is_running(self) -> bool:
        return self._running

    def is_closed(self) -> bool:
        return self._closed

    def get_debug(self) -> bool:
        return False

    async def shutdown_asyncgens(self) -> None:
        pass

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """asyncio tells its loop; here a cancelled timer is skipped when it comes up."""


def new_loop(seed: int | str, *, trace: Trace | None = None) -> SimulatedLoop:
    """The stubs call the loop abstract, since it leaves out on purpose what a simulation must not use."""
    return SimulatedLoop(seed, trace=trace)  # type: ignore[abstract]


class _Scheduled(asyncio.TimerHandle):
    """A callback with its process and, where it is the step of a task, that task."""

    __slots__ = ("process", "task")

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[object, ...],
        loop: SimulatedLoop,
        context: Context | None,
    ) -> None:
        if context is None:
            context = copy_context()
        super().__init__(when, callback, args, loop, context)
        self.process: Process | None = context.get(CURRENT)
        owner = getattr(callback, "__self__", None)
        self.task: asyncio.Task[object] | None = owner if isinstance(owner, asyncio.Task) else None

    @property
    def is_pool_work(self) -> bool:
        """Whether it is what a thread of the disk pool would do."""
        return getattr(self._callback, "__name__", "") == "_execute"  # type: ignore[attr-defined]

    def work(self) -> str:
        """What is done: the coroutine of a task, or the callback."""
        coroutine = None if self.task is None else self.task.get_coro()
        return self.label() if coroutine is None else getattr(coroutine, "__qualname__", self.label())

    def label(self) -> str:
        """The same in every run: no addresses."""
        if self.task is not None:
            return self.task.get_name()
        return getattr(self._callback, "__qualname__", None) or type(self._callback).__name__  # type: ignore[attr-defined]
