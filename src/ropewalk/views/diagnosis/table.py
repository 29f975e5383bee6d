"""All rules, in the order in which their findings are shown. The page docs/reference/doctor.md is made from it."""

from typing import Final

from ropewalk.views.diagnosis.cluster_rules import CLUSTER_RULES
from ropewalk.views.diagnosis.machine_rules import MACHINE_RULES
from ropewalk.views.diagnosis.node_rules import NODE_RULES
from ropewalk.views.diagnosis.rule import Rule
from ropewalk.views.diagnosis.topic_rules import TOPIC_RULES

SECTIONS: Final[tuple[tuple[str, tuple[Rule, ...]], ...]] = (
    ("The cluster and its nodes", CLUSTER_RULES),
    ("Topics and groups", TOPIC_RULES),
    ("What nodes tell in figures", NODE_RULES),
    ("This machine", MACHINE_RULES),
)
RULES: Final[tuple[Rule, ...]] = tuple(rule for _, rules in SECTIONS for rule in rules)
