"""The judge of whole clusters remembers what it needs for a verdict, also what the metadata forgets."""

from ropewalk.base.ids import LeaderEpoch, NodeId, TopicId
from ropewalk.base.limits import LOSSES_REMEMBERED_MAX
from ropewalk.metadata.records import LossRecorded, MetadataRecord, PartitionCreated, TopicCreated
from ropewalk.sim.judges.history import Journal
from ropewalk.sim.machines.sometimes import Sometimes
from ropewalk.sim.runs.cluster.judge import MetadataJudge
from ropewalk.sim.runs.cluster.sometimes import EXPECTED

BRISK = TopicId(b"b" * 16)
BROAD = TopicId(b"w" * 16)
NODE = NodeId(0)


def _loss(topic_id: TopicId, index: int) -> LossRecorded:
    return LossRecorded(topic_id, index, NODE, LeaderEpoch(1), 0, "nobody in sync was left")


def test_a_loss_is_known_to_the_judge_after_the_metadata_have_forgotten_it() -> None:
    """As in seed 27, in which a topic of 200 partitions lost records after another had."""
    judge = MetadataJudge(Journal(), Sometimes(EXPECTED), lambda _name: True)
    records: list[MetadataRecord] = [
        TopicCreated(BRISK, "brisk"),
        PartitionCreated(BRISK, 0, (NODE,), (NODE,), NODE, LeaderEpoch(0), 0),
        TopicCreated(BROAD, "broad"),
        *(
            PartitionCreated(BROAD, index, (NODE,), (NODE,), NODE, LeaderEpoch(0), 0)
            for index in range(LOSSES_REMEMBERED_MAX)
        ),
        _loss(BRISK, 0),
        *(_loss(BROAD, index) for index in range(LOSSES_REMEMBERED_MAX)),
    ]
    judge.on_applied(records, 0)
    assert BRISK not in {loss.topic_id for loss in judge.image.losses}
    assert (BRISK, 0) in judge.lost
