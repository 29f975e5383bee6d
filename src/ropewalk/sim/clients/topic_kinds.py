"""The kinds of topics that runs have, with settings drawn so that within seconds something becomes of the records."""

import random
from enum import Enum

from ropewalk.sim.judges.history import Promise


class Kind(Enum):
    PLAIN = "plain"
    COMPACTED = "compacted"
    EXPIRING = "expiring"
    UNFLUSHED = "unflushed"


def draw_settings(rng: random.Random, kind: Kind) -> tuple[dict[str, str], Promise]:
    """A topic's settings, and what follows from them for whoever uses it."""
    settings = {
        "segment.ms": str(rng.choice([1000, 2000, 5000])),
        "index.interval.bytes": str(rng.choice([0, 200, 1000, 4096])),
        "retention.ms": "-1",
    }
    match kind:
        case Kind.PLAIN:
            return settings, Promise()
        case Kind.COMPACTED:
            return _draw_compaction(rng, settings)
        case Kind.EXPIRING:
            retention_ms = rng.choice([3000, 6000])
            return settings | {"retention.ms": str(retention_ms)}, Promise(retention_ms=retention_ms)
        case Kind.UNFLUSHED:
            return settings | {"flush": "os"}, Promise(survives_power_cuts=False)


def _draw_compaction(rng: random.Random, settings: dict[str, str]) -> tuple[dict[str, str], Promise]:
    delete_retention_ms = rng.choice([0, 1500, 4000, 86_400_000])
    settings |= {
        "cleanup.policy": "compact",
        "segment.ms": str(rng.choice([200, 500, 1000])),
        "delete.retention.ms": str(delete_retention_ms),
        "min.cleanable.dirty.ratio": rng.choice(["0", "0.1", "0.5"]),
        "min.compaction.lag.ms": str(rng.choice([0, 0, 800])),
    }
    if rng.random() < 0.3:
        settings["max.compaction.lag.ms"] = "1000"
    retention_ms: int | None = None
    if rng.random() < 0.3:
        retention_ms = rng.choice([5000, 10_000])
        settings |= {"cleanup.policy": "compact,delete", "retention.ms": str(retention_ms)}
    return settings, Promise(
        is_compacted=True, delete_retention_ms=delete_retention_ms, retention_ms=retention_ms
    )
