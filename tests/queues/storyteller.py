"""The words of scenarios about queues; how a file is read and told is in `tests/storyteller.py`.

A message is called by its offset; records of state between messages have offsets, too. A receiver remembers the attempts it was given.

    send [group=g] [delay=1000]                 to a standard queue
    send group=g id=x                           to a FIFO queue
    receive a [count=1] [hidden=30000] [wait=0] [request=r]
    delete a 3 4, release a 3 [attempt=1]
    change a 3 [to=0]
    purge, expire 5, rewind 0
    move [refused] [unheard]                    what is on its way is carried to its target
    task t, next [count=10], want 3 4 [to=0], end t [COMPLETED]   a move task: it comes, what is next, move these, it ends
    snapshot, figures, clock 5000               clock: from the next crash on, the leader's clock is so far ahead
    dead [max=2], fifo                          settings: dead letters, and a FIFO queue
"""

from collections.abc import Iterator

from msgspec.structs import replace

from ropewalk.queues.answers import Admitted, Answer, Done, Moved, Received, ToMove
from ropewalk.queues.commands import (
    AnyCommand,
    BeginTask,
    ChangeVisibility,
    Delete,
    EndTask,
    Expire,
    Handle,
    Move,
    NextToMove,
    Purge,
    Receive,
    Release,
    Rewind,
    VisibilityChange,
)
from ropewalk.queues.errors import QueueError
from ropewalk.queues.events import (
    Acquired,
    Cleared,
    Event,
    Hidden,
    MoveEnded,
    MoveIntended,
    Passed,
    Released,
    Rewound,
    Settled,
    TaskBegun,
    TaskEnded,
)
from ropewalk.queues.settings import DeadLetterTarget
from ropewalk.queues.state import TaskShare
from tests.queues.stage import TARGET, Stage
from tests.storyteller import Storyteller


class QueueStory(Storyteller[AnyCommand]):
    def __init__(self) -> None:
        self._stage = Stage()
        super().__init__(self._stage)
        self._deltas_told = 0
        self._attempts: dict[tuple[str, int], int] = {}
        self._skew_next_ms = 0

    def act(self, verb: str, words: list[str]) -> list[str] | None:
        stage = self._stage
        given = dict(word.split("=") for word in words if "=" in word)
        match verb:
            case "send":
                return self._send(given)
            case "move":
                token = stage.last_token
                moved = stage.carry_move(is_taken="refused" not in words, is_heard="unheard" not in words)
                self.told |= set(range(token + 1, stage.last_token + 1))
                return [*self.news(), f"carried {_numbers(moved)}; dead are {_numbers(tuple(stage.dead))}"]
            case "provide":
                token = stage.last_token
                stage.provide()
                self.told |= set(range(token + 1, stage.last_token + 1))
            case "snapshot":
                stage.snapshot()
            case "clock":
                stage.skew_ms = int(words[0])
            case "fifo":
                stage.settings = replace(stage.settings, is_fifo=True)
                stage.crash()
            case "dead":
                target = DeadLetterTarget(int(given.get("max", 2)), TARGET, 0)
                stage.settings = replace(stage.settings, dead_letters=target)
                stage.crash()
            case "figures":
                figures = stage.core.figures()
                named = {name: getattr(figures, name) for name in figures.__struct_fields__}
                words = [
                    f"{name.removesuffix('_count')}={int(value)}" for name, value in named.items() if value
                ]
                floor = f"floor={stage.core.state.floor} cursor={stage.core.state.cursor}"
                return [" ".join([floor, *words])]
            case _:
                return None
        return self.news() or ["ok"]

    def question(self, verb: str, words: list[str]) -> tuple[str, AnyCommand]:
        if verb in ("purge", "expire", "rewind"):
            offset = int(words[0]) if words else len(self._stage.log)
            if verb == "rewind":
                return "", Rewind(offset)
            return "", Purge(offset) if verb == "purge" else Expire(offset)
        if verb in ("task", "next", "want", "end"):
            return "task", self._task(verb, words)
        caller, *rest = words
        given = dict(word.split("=") for word in rest if "=" in word)
        handles = tuple(self._handle(caller, int(word), given) for word in rest if "=" not in word)
        match verb:
            case "receive":
                return caller, Receive(
                    int(given.get("count", 1)),
                    int(given.get("hidden", 30_000)),
                    int(given.get("wait", 0)),
                    given.get("request", "").encode(),
                )
            case "delete":
                return caller, Delete(handles)
            case "release":
                return caller, Release(handles)
            case "change":
                to_ms = int(given.get("to", 0))
                return caller, ChangeVisibility(tuple(VisibilityChange(each, to_ms) for each in handles))
        raise ValueError(f"no such command: {verb}")

    def _task(self, verb: str, words: list[str]) -> AnyCommand:
        given = dict(word.split("=") for word in words if "=" in word)
        match verb:
            case "task":
                return BeginTask(words[0].encode(), len(self._stage.log))
            case "next":
                return NextToMove(int(given.get("count", 10)))
            case "want":
                offsets = tuple(int(word) for word in words if "=" not in word)
                return Move(offsets, TARGET, int(given.get("to", 0)))
        return EndTask(words[0].encode(), words[1] if len(words) > 1 else "COMPLETED")

    def ask(self, command: AnyCommand) -> int:
        return self._stage.ask(command)

    def new_events(self) -> Iterator[str]:
        for delta in self._stage.deltas[self._deltas_told :]:
            told = [_event(event, delta.log_ms) for event in delta.events]
            yield "; ".join(told) or "the time"
        self._deltas_told = len(self._stage.deltas)

    def answer(self, caller: str, answer: Answer | QueueError) -> str:
        if isinstance(answer, Received):
            for given in answer.messages:
                self._attempts[caller, given.offset] = answer.attempt
        return _answer(answer)

    def _handle(self, caller: str, offset: int, given: dict[str, str]) -> Handle:
        return Handle(offset, int(given.get("attempt", self._attempts.get((caller, offset), 0))))

    def _send(self, given: dict[str, str]) -> list[str]:
        if "id" not in given:
            offset = self._stage.send(group=given.get("group", ""), delay_ms=int(given.get("delay", 0)))
            return [f"is {offset}", *self.news()]
        answer = self._stage.send_fifo(given["group"], given["id"])
        self.told.add(self._stage.last_token)
        return [_answer(answer), *self.news()]


def _numbers(offsets: tuple[int, ...]) -> str:
    return " ".join(map(str, offsets)) or "nothing"


def _event(event: Event, log_ms: int) -> str:
    match event:
        case Acquired(offsets, _, attempt, _, until_ms):
            return f"{_numbers(offsets)} given in attempt {attempt} for {until_ms - log_ms} ms"
        case Hidden(offsets, until_ms, is_acquired):
            return f"{_numbers(offsets)} {'in flight' if is_acquired else 'rests'} for {until_ms - log_ms} ms"
        case Released(offsets):
            return f"{_numbers(offsets)} released"
        case Settled(offsets):
            return f"{_numbers(offsets)} settled"
        case Passed(end_offset):
            return f"passed {end_offset}"
        case Cleared(end_offset):
            return f"cleared below {end_offset}"
        case Rewound(offset):
            return f"rewound to {offset}"
        case MoveIntended(offsets, _, partition, producer_id, _, sequence):
            return f"{_numbers(offsets)} to move to {partition} as {producer_id}/{sequence}"
        case MoveEnded(moved_count):
            return f"moved {moved_count}" if moved_count else "not moved"
        case TaskBegun(task_id, end_offset):
            return f"task {task_id.decode()} below {end_offset}"
        case TaskEnded(ending):
            return f"task {ending.lower()}"


def _answer(answer: Answer | QueueError) -> str:
    match answer:
        case QueueError():
            return type(answer).__name__
        case Received(_, messages):
            told = [f"{given.offset} (received {given.receive_count})" for given in messages]
            return ", ".join(told) or "nothing"
        case Done(refusals):
            return " ".join("ok" if each is None else type(each).__name__ for each in refusals) or "ok"
        case TaskShare():
            return f"{answer.moved_count} moved below {answer.end_offset}{answer.ending and ', '}{answer.ending.lower()}"
        case ToMove(offsets):
            return f"next {_numbers(offsets)}"
        case Moved(moved_count, chosen_count):
            return f"moved {moved_count} of {chosen_count}"
        case Admitted(offsets, are_duplicates):
            return f"is {offsets[0]}{', a duplicate' if are_duplicates[0] else ''}"
    return "ok"
