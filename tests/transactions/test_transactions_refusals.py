"""Who is refused, with what, and with which code of Kafka's: one row per state, producer and request."""

import pytest
from msgspec.structs import replace

from ropewalk.base.ids import TopicPartition
from ropewalk.base.patterns import compile_pattern
from ropewalk.kafka.errors import code_for
from ropewalk.transactions.answers import Ended, PartitionsAdded, ProducerInitialised
from ropewalk.transactions.commands import AddPartitions, AnyCommand, EndTransaction, InitProducer
from ropewalk.transactions.errors import TransactionError
from ropewalk.transactions.events import TransactionRecorded, TransactionState
from ropewalk.transactions.identity import EPOCH_LAST, EPOCH_MAX
from ropewalk.transactions.step import TransactionStep as Step
from ropewalk.wire.error_code import ErrorCode
from tests.transactions.stage import Stage

PLACE = TopicPartition("p", 0)
FENCED = ErrorCode.PRODUCER_FENCED
UNKNOWN = ErrorCode.INVALID_PRODUCER_ID_MAPPING
CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS
WRONG = ErrorCode.INVALID_TXN_STATE
DONE = ErrorCode.NONE
"""No error, and nothing changes."""
RAISED = "raised"
"""No error, and the epoch is raised."""

CURRENT = (7, 5)
REPEATED = (7, 4)
FORMER = (7, 3)
AHEAD = (7, 6)
STRANGER = (8, 5)

EMPTY = TransactionRecorded(
    transactional_id="t",
    producer_id=7,
    producer_epoch=5,
    state=TransactionState.EMPTY,
    timeout_ms=60_000,
    partitions=(),
    started_at_ms=-1,
    updated_at_ms=0,
    version=0,
    previous_producer_id=7,
)
ONGOING = replace(EMPTY, state=TransactionState.ONGOING, partitions=(PLACE,), started_at_ms=0)
PREPARE_COMMIT = replace(ONGOING, state=TransactionState.PREPARE_COMMIT, version=2, previous_epoch=4)
PREPARE_ABORT = replace(PREPARE_COMMIT, state=TransactionState.PREPARE_ABORT)
COMPLETE_COMMIT = replace(PREPARE_COMMIT, state=TransactionState.COMPLETE_COMMIT, partitions=())
COMPLETE_ABORT = replace(COMPLETE_COMMIT, state=TransactionState.COMPLETE_ABORT)
STATES = (EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT)
PRODUCERS = (CURRENT, REPEATED, FORMER, AHEAD, STRANGER)

# What becomes of an end in each state, for the producers in the order above.
ENDS: dict[str, dict[str, tuple[object, ...]]] = {
    "own epoch, abort": {
        "Empty": (RAISED, FENCED, FENCED, FENCED, UNKNOWN),
        "Ongoing": (RAISED, FENCED, FENCED, FENCED, UNKNOWN),
        "PrepareCommit": (CONCURRENT, WRONG, FENCED, FENCED, UNKNOWN),
        "PrepareAbort": (CONCURRENT, CONCURRENT, FENCED, FENCED, UNKNOWN),
        "CompleteCommit": (RAISED, WRONG, FENCED, FENCED, UNKNOWN),
        "CompleteAbort": (RAISED, DONE, FENCED, FENCED, UNKNOWN),
    },
    "own epoch, commit": {
        "Empty": (WRONG, FENCED, FENCED, FENCED, UNKNOWN),
        "Ongoing": (RAISED, FENCED, FENCED, FENCED, UNKNOWN),
        "PrepareCommit": (CONCURRENT, CONCURRENT, FENCED, FENCED, UNKNOWN),
        "PrepareAbort": (CONCURRENT, WRONG, FENCED, FENCED, UNKNOWN),
        "CompleteCommit": (WRONG, DONE, FENCED, FENCED, UNKNOWN),
        "CompleteAbort": (WRONG, WRONG, FENCED, FENCED, UNKNOWN),
    },
    "original, abort": {
        "Empty": (WRONG, FENCED, FENCED, FENCED, UNKNOWN),
        "Ongoing": (DONE, FENCED, FENCED, FENCED, UNKNOWN),
        "PrepareCommit": (WRONG, FENCED, FENCED, FENCED, UNKNOWN),
        "PrepareAbort": (CONCURRENT, FENCED, FENCED, FENCED, UNKNOWN),
        "CompleteCommit": (WRONG, FENCED, FENCED, FENCED, UNKNOWN),
        "CompleteAbort": (DONE, FENCED, FENCED, FENCED, UNKNOWN),
    },
    "original, commit": {
        "Empty": (WRONG, FENCED, FENCED, FENCED, UNKNOWN),
        "Ongoing": (DONE, FENCED, FENCED, FENCED, UNKNOWN),
        "PrepareCommit": (CONCURRENT, FENCED, FENCED, FENCED, UNKNOWN),
        "PrepareAbort": (WRONG, FENCED, FENCED, FENCED, UNKNOWN),
        "CompleteCommit": (DONE, FENCED, FENCED, FENCED, UNKNOWN),
        "CompleteAbort": (WRONG, FENCED, FENCED, FENCED, UNKNOWN),
    },
}


@pytest.mark.parametrize("record", STATES, ids=lambda record: record.state.value)
@pytest.mark.parametrize("end", ENDS)
def test_ends(end: str, record: TransactionRecorded) -> None:
    # In a state that no end has led to, an epoch that came before is that of a producer that went on after an error.
    record = replace(record, previous_epoch=REPEATED[1])
    found: list[object] = []
    for producer_id, epoch in PRODUCERS:
        command = EndTransaction(
            "t", producer_id, epoch, committed=end.endswith("commit"), bumps_epoch=end.startswith("own")
        )
        answer = _answer(record, command)
        if isinstance(answer, Ended):
            found.append(RAISED if (answer.producer_id, answer.producer_epoch) == AHEAD else DONE)
        else:
            found.append(answer)
    assert tuple(found) == ENDS[end][record.state.value]


JOINS = {
    "Empty": (DONE, FENCED, FENCED, FENCED, UNKNOWN),
    "Ongoing": (DONE, FENCED, FENCED, FENCED, UNKNOWN),
    "PrepareCommit": (CONCURRENT, FENCED, FENCED, FENCED, UNKNOWN),
    "PrepareAbort": (CONCURRENT, FENCED, FENCED, FENCED, UNKNOWN),
    "CompleteCommit": (DONE, FENCED, FENCED, FENCED, UNKNOWN),
    "CompleteAbort": (DONE, FENCED, FENCED, FENCED, UNKNOWN),
}


@pytest.mark.parametrize("record", STATES, ids=lambda record: record.state.value)
def test_joins(record: TransactionRecorded) -> None:
    found: list[object] = []
    for producer_id, epoch in PRODUCERS:
        answer = _answer(record, AddPartitions("t", producer_id, epoch, (PLACE,)))
        found.append(DONE if isinstance(answer, PartitionsAdded) else answer)
    assert tuple(found) == JOINS[record.state.value]


@pytest.mark.parametrize("record", STATES, ids=lambda record: record.state.value)
def test_a_partition_is_verified_only_while_the_transaction_has_it(record: TransactionRecorded) -> None:
    answer = _answer(record, AddPartitions("t", *CURRENT, (PLACE,), verify_only=True))
    if record.state.is_prepared:
        assert answer is CONCURRENT
    else:
        assert isinstance(answer, PartitionsAdded)
        codes = [DONE if refusal is None else code_for(refusal) for refusal in answer.partitions]
        assert codes == [
            DONE if record.state is TransactionState.ONGOING else ErrorCode.TRANSACTION_ABORTABLE
        ]


GOING_ON = {
    "Empty": (RAISED, DONE, FENCED, FENCED, FENCED),
    "Ongoing": (CONCURRENT, FENCED, FENCED, FENCED, FENCED),
    "PrepareCommit": (CONCURRENT, CONCURRENT, FENCED, FENCED, FENCED),
    "PrepareAbort": (CONCURRENT, CONCURRENT, FENCED, FENCED, FENCED),
    "CompleteCommit": (RAISED, DONE, FENCED, FENCED, FENCED),
    "CompleteAbort": (RAISED, DONE, FENCED, FENCED, FENCED),
}


@pytest.mark.parametrize("record", STATES, ids=lambda record: record.state.value)
def test_producers_that_go_on(record: TransactionRecorded) -> None:
    record = replace(record, previous_epoch=REPEATED[1])
    found: list[object] = []
    for producer_id, epoch in PRODUCERS:
        answer = _answer(record, InitProducer("t", 60_000, producer_id, epoch))
        if isinstance(answer, ProducerInitialised):
            found.append(RAISED if (answer.producer_id, answer.producer_epoch) == AHEAD else DONE)
        else:
            found.append(answer)
    assert tuple(found) == GOING_ON[record.state.value]


INVALID = ErrorCode.INVALID_REQUEST
TIMEOUT = ErrorCode.INVALID_TRANSACTION_TIMEOUT


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        pytest.param(InitProducer("", 60_000), INVALID, id="no transactional id"),
        pytest.param(InitProducer("x" * 32_768, 60_000), INVALID, id="too long for a record"),
        pytest.param(InitProducer("é" * 16_384, 60_000), INVALID, id="too long in bytes"),
        pytest.param(InitProducer("t", 60_000, 7, -1), INVALID, id="an id without its epoch"),
        pytest.param(InitProducer("t", 60_000, -1, 5), INVALID, id="an epoch without its id"),
        pytest.param(InitProducer("t", 0), TIMEOUT, id="no time"),
        pytest.param(InitProducer("t", -5), TIMEOUT, id="less than no time"),
        pytest.param(InitProducer("t", 900_001), TIMEOUT, id="longer than the maximum"),
        pytest.param(AddPartitions("", 7, 5, (PLACE,)), INVALID, id="joins nothing"),
        pytest.param(AddPartitions("u", 7, 5, (PLACE,)), UNKNOWN, id="joins what is not known"),
        pytest.param(
            AddPartitions("u", 7, 5, (PLACE,), verify_only=True), UNKNOWN, id="verifies what is not known"
        ),
        pytest.param(AddPartitions("t", -1, -1, (PLACE,)), UNKNOWN, id="joins as nobody"),
        pytest.param(EndTransaction("", 7, 5, committed=True, bumps_epoch=True), INVALID, id="ends nothing"),
        pytest.param(
            EndTransaction("u", 7, 5, committed=True, bumps_epoch=True), UNKNOWN, id="ends what is not known"
        ),
        pytest.param(
            EndTransaction("t", 7, -1, committed=False, bumps_epoch=True), FENCED, id="ends without an epoch"
        ),
    ],
)
def test_requests_that_make_no_sense(command: AnyCommand, expected: ErrorCode) -> None:
    assert _answer(EMPTY, command) is expected


def test_the_epoch_for_markers_is_given_to_nobody() -> None:
    """A coordinator's abort may end with it; whatever the producer asks next, it is given another producer id."""
    aborted = replace(COMPLETE_ABORT, producer_epoch=EPOCH_MAX, previous_epoch=EPOCH_LAST)
    commands: list[AnyCommand] = [
        InitProducer("t", 60_000),
        InitProducer("t", 60_000, 7, EPOCH_LAST),
        EndTransaction("t", 7, EPOCH_LAST, committed=False, bumps_epoch=True),
    ]
    for command in commands:
        answer = _answer(aborted, command)
        assert isinstance(answer, ProducerInitialised | Ended)
        assert answer.producer_id not in (7, -1)
        assert answer.producer_epoch == 0


@pytest.mark.parametrize("text", ["(", "[a", "*", "a{1001}", "(?=a)", "x" * 10_001, "(((a{100}){100}){100})"])
def test_what_is_no_expression_or_too_large_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        compile_pattern(text)


def test_an_expression_is_for_the_whole_name_and_takes_no_time() -> None:
    matches = compile_pattern("(a*)*b")
    assert matches("aab")
    assert not matches("aabc")
    assert not matches("a" * 10_000)


def _answer(record: TransactionRecorded, command: AnyCommand) -> object:
    """The answer, or Kafka's code for a refusal."""
    stage = Stage()
    stage.carry_out(Step(events=(record,)))
    answer = stage.answer(command)
    return code_for(answer) if isinstance(answer, TransactionError) else answer
