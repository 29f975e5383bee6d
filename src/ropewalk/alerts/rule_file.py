"""The rules as a file for Prometheus (`rule_files`), in YAML.

Strings are written as JSON has them, which is YAML as well.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from ropewalk.alerts.promql import duration, promql
from ropewalk.alerts.rules import VALUE, Rule, RuleGroup


def rule_file(groups: Iterable[RuleGroup], *, docs: str) -> str:
    """`docs` is where the documentation is: runbook links begin with it."""
    return "\n".join(["groups:", *_lines(groups, docs.rstrip("/"))]) + "\n"


def _lines(groups: Iterable[RuleGroup], docs: str) -> Iterator[str]:
    for group in groups:
        yield f"  - name: {json.dumps(group.name)}"
        yield "    rules:"
        for rule in group.rules:
            yield from _rule(rule, docs)


def _rule(rule: Rule, docs: str) -> Sequence[str]:
    waiting = [f"        for: {duration(rule.for_s)}"] if rule.for_s else []
    return [
        f"      - alert: {rule.name}",
        f"        expr: {json.dumps(promql(rule.condition))}",
        *waiting,
        f"        labels: {{severity: {rule.severity.value}}}",
        "        annotations:",
        f"          summary: {json.dumps(_templated(rule.summary), ensure_ascii=False)}",
        f"          runbook_url: {json.dumps(f'{docs}/reference/alerts.md#{rule.anchor}')}",
    ]


def _templated(summary: str) -> str:
    """Names in braces as Prometheus's templates have them."""

    def named(match: re.Match[str]) -> str:
        return "{{ $value }}" if match[1] == VALUE else "{{ $labels." + match[1] + " }}"

    return re.sub(r"\{(\w+)\}", named, summary)
