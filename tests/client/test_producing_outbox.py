"""The outbox against a partition that checks sequences as a broker does, over a connection that fails at will."""

from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import ProducerEpoch, ProducerId, TopicId, TopicPartition
from ropewalk.client.calls.produce import Produced
from ropewalk.client.errors import ConnectionLost, DeliveryFailed, RemoteError
from ropewalk.client.producing.batch import Batch
from ropewalk.client.producing.outbox import Outbox
from ropewalk.client.producing.settings import producer_settings
from ropewalk.records.batch import decode_header
from ropewalk.records.record import decode_records
from ropewalk.wire.error_code import ErrorCode

ORDERS = TopicPartition("orders", 0)
FIRST = (ProducerId(7), ProducerEpoch(0))


class CheckingPartition:
    """Takes a batch only in its sequence, answers a repeated one from memory, begins anew with a higher epoch. Of a producer
    that it has never heard of it takes any sequence for the first: what it knew may have expired."""

    def __init__(self) -> None:
        self.values: list[bytes | None] = []
        self.epoch = -1
        self.next_sequence = 0
        self.known: dict[int, int] = {}

    def append(self, encoded: bytes) -> Produced | RopewalkError:
        header = decode_header(encoded)
        if header.producer_epoch < self.epoch:
            return RemoteError(ErrorCode.INVALID_PRODUCER_EPOCH)
        if header.producer_epoch > self.epoch:
            if header.base_sequence != 0 and self.epoch >= 0:
                return RemoteError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
            self.epoch, self.next_sequence, self.known = header.producer_epoch, header.base_sequence, {}
        if header.base_sequence in self.known:
            return Produced(self.known[header.base_sequence])
        if header.base_sequence != self.next_sequence:
            return RemoteError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        base_offset = len(self.values)
        self.known[header.base_sequence] = base_offset
        self.next_sequence += header.record_count
        self.values += [record.value for record in decode_records(encoded)]
        return Produced(base_offset)


class Run:
    """One producer and one partition. Requests arrive in order; a break loses those that are not answered."""

    def __init__(self) -> None:
        settings = producer_settings({"batch_size": 120, "linger_ms": 0, "delivery_timeout_ms": 50})
        self.outbox = Outbox(settings, self._on_settled)
        self.outbox.identity = FIRST
        self.partition = CheckingPartition()
        self.now_ms = 0.0
        self.sent: list[bytes] = []
        self.lost: set[bytes] = set()
        self.unknown: set[bytes] = set()
        self.on_the_wire: list[tuple[Batch, bytes]] = []
        self.stuck: list[bytes] = []
        """In the sockets of connections that the producer has given up, before a broker that hangs: read some time later."""
        self._values: dict[int, list[bytes]] = {}

    def send(self, count: int) -> None:
        for _ in range(count):
            value = b"%06d" % len(self.sent)
            self.sent.append(value)
            queue = self.outbox.queue(ORDERS)
            batch, _, _ = self.outbox.add(queue, (None, value, 0, ()), 40, self.now_ms)
            self._values.setdefault(id(batch), []).append(value)
            self._keep(batch)

    def _keep(self, batch: Batch) -> None:
        self.kept = [*getattr(self, "kept", []), batch]  # so that no id is used twice

    def pump(self) -> None:
        self.outbox.expire(self.now_ms)
        for queue in list(self.outbox.ready(self.now_ms)):
            while self.outbox.may_send(queue, self.now_ms):
                batch = self.outbox.take(queue, self.now_ms)
                assert batch.encoded is not None
                self.on_the_wire.append((batch, bytes(batch.encoded)))

    def answer(self) -> None:
        if self.on_the_wire:
            batch, encoded = self.on_the_wire.pop(0)
            self._tell(batch, self.partition.append(encoded))

    def refuse(self, code: ErrorCode) -> None:
        if self.on_the_wire:
            batch, _ = self.on_the_wire.pop(0)
            self._tell(batch, RemoteError(code))

    def break_connection(self, arrived_count: int, *, is_hanging: bool = False) -> None:
        broken, self.on_the_wire = self.on_the_wire, []
        arrived = [encoded for _, encoded in broken[:arrived_count]]
        if is_hanging:
            self.stuck += arrived
        else:
            for encoded in arrived:
                self.partition.append(encoded)
        for batch, _ in broken:
            self._tell(batch, ConnectionLost("broken"))

    def read_what_is_stuck(self) -> None:
        stuck, self.stuck = self.stuck, []
        for encoded in stuck:
            self.partition.append(encoded)

    def finish(self) -> None:
        while not self.outbox.is_empty:
            self.now_ms += 6
            self.pump()
            self.answer()

    def _tell(self, batch: Batch, outcome: Produced | RopewalkError) -> None:
        if isinstance(outcome, RopewalkError):
            self.outbox.on_failure(batch, outcome, self.now_ms, 5)
        else:
            self.outbox.on_acknowledged(batch, outcome, self.now_ms)

    def _on_settled(self, batch: Batch) -> None:
        values = self._values[id(batch)]
        if isinstance(batch.outcome, DeliveryFailed):
            (self.unknown if batch.outcome.is_unknown else self.lost).update(values)
        else:
            assert isinstance(batch.outcome, Produced)
            start = batch.outcome.base_offset
            assert self.partition.values[start : start + len(values)] == values


steps = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(1, 8)),
        st.tuples(st.just("answer"), st.just(0)),
        st.tuples(st.just("break"), st.integers(0, 5)),
        st.tuples(st.just("hang"), st.integers(1, 5)),
        st.tuples(st.just("wake"), st.just(0)),
        st.tuples(st.just("wait"), st.integers(1, 30)),
        st.tuples(st.just("too large"), st.just(0)),
        st.tuples(st.just("not leader"), st.just(0)),
    ),
    max_size=60,
)


@given(steps)
def test_whatever_the_connection_does_records_are_there_once_and_in_order(
    taken: list[tuple[str, int]],
) -> None:
    run = Run()
    for kind, number in taken:
        match kind:
            case "send":
                run.send(number)
            case "answer":
                run.answer()
            case "break":
                run.break_connection(number)
            case "hang":
                run.break_connection(number, is_hanging=True)
            case "wake":
                run.read_what_is_stuck()
            case "wait":
                run.now_ms += number
            case "too large":
                run.refuse(ErrorCode.MESSAGE_TOO_LARGE)
            case _:
                run.refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        run.pump()
    run.finish()
    run.read_what_is_stuck()
    there = run.partition.values
    assert there == sorted(set(there), key=lambda value: value or b"")
    assert set(run.sent) - set(there) <= run.lost | run.unknown
    assert not run.lost & set(there)
    assert run.outbox.held_bytes == 0


def test_five_batches_are_on_their_way_at_once_and_no_sixth() -> None:
    run = Run()
    run.send(30)  # three to a batch
    run.pump()
    assert len(run.on_the_wire) == 1, (
        "a stranger goes alone: whatever came first would count as the beginning"
    )
    run.answer()
    run.pump()
    assert [len(decode_records(encoded)) for _, encoded in run.on_the_wire] == [3] * 5
    run.answer()
    run.pump()
    assert [decode_header(encoded).base_sequence for _, encoded in run.on_the_wire] == [6, 9, 12, 15, 18]


def test_the_second_batch_of_a_stranger_does_not_overtake_the_first() -> None:
    """A topic that was just made: the first request finds no leader yet, the second would."""
    run = Run()
    run.send(9)
    run.pump()
    run.refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    run.finish()
    assert run.partition.values == run.sent


def test_after_a_break_the_first_goes_alone_until_it_has_arrived() -> None:
    run = Run()
    run.send(9)
    run.pump()
    run.break_connection(0)
    run.now_ms += 10
    run.pump()
    assert [decode_header(encoded).base_sequence for _, encoded in run.on_the_wire] == [0]
    run.finish()
    assert run.partition.values == run.sent


def test_a_batch_that_is_given_up_does_not_hold_the_partition_up() -> None:
    run = Run()
    run.send(3)
    run.finish()
    run.send(9)
    run.pump()
    run.refuse(ErrorCode.MESSAGE_TOO_LARGE)
    run.finish()
    assert run.partition.values == run.sent[:3] + run.sent[6:]
    assert run.lost == set(run.sent[3:6])
    assert run.partition.epoch == FIRST[1] + 1, "behind the gap sequences begin anew"


def test_a_batch_that_may_be_in_the_log_is_never_given_another_epoch() -> None:
    """The broker hangs with two batches in its socket; the first is given up, and the second is missing it when asked again."""
    run = Run()
    run.send(3)
    run.finish()
    run.send(3)
    run.pump()
    run.now_ms += 20
    run.send(3)
    run.pump()
    run.break_connection(2, is_hanging=True)
    run.now_ms += 35
    run.pump()
    run.answer()  # the second again, of which the broker misses the one before
    run.read_what_is_stuck()
    run.finish()
    assert run.partition.values == run.sent
    assert run.unknown == set(run.sent[3:])
    run.send(3)
    run.finish()
    assert run.partition.values == run.sent, "whoever comes behind goes on"


def test_a_batch_that_may_be_in_the_log_does_not_go_along_into_the_epoch_of_the_one_before_it() -> None:
    run = Run()
    run.send(3)
    run.finish()
    run.send(9)
    run.pump()
    run.refuse(ErrorCode.MESSAGE_TOO_LARGE)  # leaves a gap
    run.answer()  # the second says so; the third is still on its way, and stays in the socket of a broker that hangs
    run.break_connection(1, is_hanging=True)
    run.finish()
    run.read_what_is_stuck()
    assert run.partition.values == run.sent[:3] + run.sent[6:9]
    assert (run.lost, run.unknown) == (set(run.sent[3:6]), set(run.sent[9:]))


def test_a_leader_that_is_deposed_may_have_appended_what_it_refuses() -> None:
    """It says that it does not lead, whether the batch was waiting for its acks or was never taken."""
    run = Run()
    run.send(3)
    run.pump()
    run.now_ms += 60
    run.refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert run.unknown == set(run.sent)


def test_to_a_topic_that_was_made_anew_the_producer_is_a_stranger() -> None:
    """Of one that it does not know a partition takes any sequence for the first: the second batch must not come before the first."""
    run = Run()
    queue = run.outbox.queue(ORDERS)
    run.outbox.on_topic(queue, TopicId(b"1" * 16))
    run.send(3)
    run.finish()
    run.send(9)
    run.outbox.on_topic(queue, TopicId(b"2" * 16))
    run.pump()
    assert len(run.on_the_wire) == 1
