"""Broker settings about outgrowing what there is: when the cluster wants another node, and when a topic more partitions.

Only the node that decides acts on them. Set them for all brokers, since any controller may come to decide.
"""

from collections.abc import Mapping
from typing import Final

from ropewalk.metadata.settings.setting import LONG_MAX, Kind, Setting

_CATALOGUE: Final = (
    Setting(
        "cluster.scale.webhook",
        Kind.STRING,
        None,
        "Where it is told, by a POST with JSON, that the cluster wants another node, why, and when it no longer does. Unless set, nowhere.",
        pattern=r"https?://[^\s/?#@]+(/[^\s#]*)?",
    ),
    Setting(
        "cluster.scale.cpu.percent",
        Kind.INT,
        "75",
        "Another node is wanted while brokers are on average busier than this: a cluster of four can then lose one and go on as before.",
        minimum=1,
        maximum=100,
    ),
    Setting(
        "cluster.scale.disk.percent",
        Kind.INT,
        "75",
        "Another node is wanted while the disks of all brokers together are fuller than this.",
        minimum=1,
        maximum=100,
    ),
    Setting(
        "cluster.scale.replicas.percent",
        Kind.INT,
        "80",
        "Another node is wanted while more than this share of the replicas is held that max.broker.partitions allows.",
        minimum=1,
        maximum=100,
    ),
    Setting(
        "cluster.scale.sustained.ms",
        Kind.LONG,
        "120000",
        "How long there must have been a reason for another node before it is told, so that one busy minute starts no node.",
        minimum=0,
        maximum=LONG_MAX,
    ),
    Setting(
        "partitions.auto.sustained.ms",
        Kind.LONG,
        "30000",
        "How long a topic must have had too much to take before it grows by itself, and before it grows again: partitions are never taken away.",
        minimum=0,
        maximum=LONG_MAX,
    ),
)

SCALING_SETTINGS: Final[Mapping[str, Setting]] = {setting.name: setting for setting in _CATALOGUE}
