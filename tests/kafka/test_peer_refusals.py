"""An error that one node puts into a code is the same error on the node that asked."""

import pytest

from ropewalk.base.errors import HistoryParted, OffsetOutOfRange
from ropewalk.broker.peers.calls.refusals import ERRORS, Refusals
from ropewalk.client.errors import RemoteError
from ropewalk.kafka.errors import CODES
from ropewalk.wire.error_code import ErrorCode


def test_the_codes_between_nodes_are_the_inverse_of_those_at_the_door() -> None:
    """An error that is added to one table is missing in the other until it is added there, too."""
    there_and_back = {(kind, code) for code, kinds in ERRORS.items() for kind in kinds}
    assert there_and_back == set(CODES.items())
    assert sum(map(len, ERRORS.values())) == len(CODES), "each stands there once"


@pytest.mark.parametrize("kind", [OffsetOutOfRange, HistoryParted])
def test_of_errors_that_are_spelled_alike_a_conversation_means_its_own(kind: type[OffsetOutOfRange]) -> None:
    error = Refusals(kind).error(RemoteError(ErrorCode.OFFSET_OUT_OF_RANGE, "gone"))
    assert type(error) is kind
    assert str(error) == "gone"


def test_what_a_conversation_does_not_expect_stays_what_it_was() -> None:
    remote = RemoteError(ErrorCode.POLICY_VIOLATION, "no")
    assert Refusals(HistoryParted).error(remote) is remote


def test_a_conversation_cannot_mean_two_errors_by_one_code() -> None:
    with pytest.raises(AssertionError, match="spelled alike"):
        Refusals(OffsetOutOfRange, HistoryParted)
