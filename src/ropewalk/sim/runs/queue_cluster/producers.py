"""A Kafka producer that writes to a topic which was adopted as a queue: its records are messages like others."""

from typing import Final

from ropewalk.base.ids import TopicPartition
from ropewalk.records.codec import Codec
from ropewalk.records.packing import pack
from ropewalk.sim.clients.workload import REQUEST_TIMEOUT_MS
from ropewalk.sim.runs.cluster.guide import Guide
from ropewalk.sim.runs.queue_cluster.ledger import Ledger
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import produce

BATCH_MAX: Final = 4


class TopicProducer:
    """Each record has a key of its own, so on a FIFO queue each is a group."""

    def __init__(self, guide: Guide, ledger: Ledger) -> None:
        self._guide = guide
        self._ledger = ledger
        self._sort = ledger.sort
        self._text_count = 0

    async def run(self) -> None:
        await self._guide.work(self._step, pause_s=0.8)

    async def _step(self) -> None:
        guide, rng = self._guide, self._guide.rng
        partition = TopicPartition(self._sort.topic, rng.randrange(self._sort.partition_count))
        link = await guide.connect_to_leader(partition)
        texts = [self._next_text() for _ in range(rng.randrange(1, BATCH_MAX))]
        now_s, now_ms = guide.workload.world.now_s, guide.clock.now_ms()
        for text in texts:
            self._ledger.on_send(text, text, at_s=now_s, delay_s=0)
        records = pack([(text.encode(), text.encode(), now_ms, ()) for text in texts], codec=Codec.NONE)
        topic = produce.TopicProduceData(
            name="",
            topic_id=guide.workload.topics.id_of(partition.topic),
            partitions=(produce.PartitionProduceData(index=partition.partition, records=bytes(records)),),
        )
        request = produce.ProduceRequest(acks=-1, timeout_ms=REQUEST_TIMEOUT_MS, topics=(topic,))
        guide.workload.operation_count += 1
        response = await link.send(produce.API, link.newest_version(produce.API), request)
        if response.topics[0].partitions[0].error_code != ErrorCode.NONE:
            guide.doubt()
            return
        for text in texts:
            self._ledger.on_sent(text, "", at_s=guide.workload.world.now_s)
            guide.workload.sometimes.note("a record of a producer was acknowledged")

    def _next_text(self) -> str:
        self._text_count += 1
        return f"{self._guide.name}/{self._text_count}"
