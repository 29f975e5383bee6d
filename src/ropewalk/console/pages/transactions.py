"""Transactions: those that are open, and those that hang; and an end to either."""

from typing import Final

from ropewalk.base.ids import TopicPartition
from ropewalk.client.administration.open_transactions import OpenTransaction
from ropewalk.client.administration.transactions import DescribedTransaction, Transactions
from ropewalk.client.calls.together import together
from ropewalk.client.errors import RemoteError
from ropewalk.console.filled_in import number
from ropewalk.console.page import Asked, Done, Page, Shown, Wrong, link
from ropewalk.console.paging import paged
from ropewalk.wire.error_code import ErrorCode


async def show(asked: Asked) -> Shown:
    transactions = Transactions(asked.client)
    words = asked.query.get("filter", "").casefold().split()
    listed = [
        each
        for each in await transactions.list()
        if all(word in each.transactional_id.casefold() for word in words)
    ]
    page = paged(
        sorted(listed, key=lambda each: (each.state != "Ongoing", each.transactional_id)),
        asked.query.get("page", ""),
    )
    described = await together([_describe(transactions, each.transactional_id) for each in page.rows])
    values: dict[str, object] = {
        "page": page,
        "described": {each.transactional_id: each for each in described if each is not None},
        "open_count": sum(each.state in ("Ongoing", "PrepareCommit", "PrepareAbort") for each in listed),
        "words": asked.query.get("filter", ""),
        "kept": {"filter": asked.query.get("filter") or None},
        "now_ms": asked.clock.now_ms(),
        "hanging": await _hanging(asked, transactions) if asked.query.get("hanging") == "yes" else None,
    }
    return Shown("transactions.html", values)


async def abort(asked: Asked) -> Done:
    """Fence the producer and have its transaction aborted."""
    name = asked.form.raw("transaction")
    if not name:
        raise Wrong("say which transaction")
    was_open = await Transactions(asked.client).abort(name)
    said = f"{name} is aborted, and its producer has to begin anew" if was_open else f"{name} has none open"
    return Done(link("transactions"), said)


async def end(asked: Asked) -> Done:
    """One that hangs, in the partition where it does. Looked for once more: what goes on elsewhere is not torn."""
    at = TopicPartition(asked.form.raw("topic"), number(asked.form.text("partition"), "partition"))
    producer_id = number(asked.form.text("producer"), "producer")
    first_offset = number(asked.form.text("first"), "first offset")
    transactions = Transactions(asked.client)
    for each in await transactions.hanging_in([at]):
        if (each.producer_id, each.first_offset) == (producer_id, first_offset):
            error = await transactions.abort_in_partition(each)
            if error is not None:
                raise error
            return Done(link("transactions", hanging="yes"), f"{at} does not wait for it any more")
    raise Wrong("this transaction does not hang any more; nothing was done")


async def _describe(transactions: Transactions, name: str) -> DescribedTransaction | None:
    """None for one that is gone since it was listed."""
    try:
        return await transactions.describe(name)
    except RemoteError as error:
        if error.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            return None
        raise


async def _hanging(asked: Asked, transactions: Transactions) -> list[OpenTransaction]:
    view = await asked.client.metadata()
    partitions = [
        TopicPartition(topic.name, each.index) for topic in view.topics for each in topic.partitions
    ]
    return list(await transactions.hanging_in(partitions))


PAGE: Final = Page(
    name="transactions",
    title="Transactions",
    menu="Transactions",
    key="x",
    show=show,
    actions={"abort": abort, "end": end},
)
