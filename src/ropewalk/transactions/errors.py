"""What producers and administrators of transactions are refused with.

RopewalkError
  TransactionError
    InvalidTransactionRequest    no transactional id, one too long for a record, or half of a producer's identity
    InvalidTransactionTimeout    not positive, or above the maximum of the settings
    UnknownProducerMapping       the transactional id is not known, or not with this producer id
    TransactionalProducerFenced  another producer has taken over the transactional id, or the epoch has moved on
    ConcurrentTransactions       the former transaction is being finished; ask again shortly
    WrongTransactionState        a commit or an abort that does not fit what the transaction has come to
    NotInTransaction             the transaction is not known to write to this partition; abort it
    UnknownTransactionalId       no such transactional id
    InvalidPattern               a filter that is no regular expression

Two of them are spelled by the version of the request, as older clients know fewer codes. `TransactionalProducerFenced`
is PRODUCER_FENCED, but INVALID_PRODUCER_EPOCH for InitProducerId below version 4, for AddPartitionsToTxn,
AddOffsetsToTxn and EndTxn below version 2, and for Produce and TxnOffsetCommit in every version. `NotInTransaction` is
TRANSACTION_ABORTABLE, but INVALID_TXN_STATE for Produce below version 11 and TxnOffsetCommit below version 4.
"""

from ropewalk.base.errors import RopewalkError


class TransactionError(RopewalkError):
    """The root of what is refused here. Nothing has changed, except where a subclass says so."""


class InvalidTransactionRequest(TransactionError):
    pass


class InvalidTransactionTimeout(TransactionError):
    pass


class UnknownProducerMapping(TransactionError):
    pass


class TransactionalProducerFenced(TransactionError):
    pass


class ConcurrentTransactions(TransactionError):
    """A producer that has asked for its id in the midst of a transaction has caused that to be aborted."""


class WrongTransactionState(TransactionError):
    pass


class NotInTransaction(TransactionError):
    pass


class UnknownTransactionalId(TransactionError):
    pass


class InvalidPattern(TransactionError):
    pass
