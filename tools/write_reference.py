"""Writes the tables of docs/reference from the code they describe.

    write_reference.py            rewrites them
    write_reference.py --check    only says which are out of date, and fails if any is

The prose of a page is written by hand. A table stands between two comments, `<!-- table: NAME -->` and
`<!-- end -->`, and belongs to this tool.
"""

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Final

import ropewalk.base.errors
import ropewalk.base.limits
import ropewalk.groups.errors
import ropewalk.sqs.errors
import ropewalk.transactions.errors
from ropewalk.alerts.declared import GROUPS
from ropewalk.alerts.promql import duration, promql
from ropewalk.base.metrics import METRICS, Metric
from ropewalk.kafka.apis import SERVED, SERVED_APIS, advertised
from ropewalk.kafka.errors import CODES
from ropewalk.kafka.rights.needs import Inside, Nothing, OnCluster, Right
from ropewalk.metadata.settings.broker import BROKER_SETTINGS
from ropewalk.metadata.settings.setting import Change, Setting
from ropewalk.metadata.settings.topic import TOPIC_SETTINGS
from ropewalk.node.settings import NODE_SETTINGS
from ropewalk.security.access import ResourceType
from ropewalk.sqs.actions import ACTIONS, OWN_ACTIONS, Action
from ropewalk.sqs.attributes import ATTRIBUTES, Attribute, Kind
from ropewalk.sqs.errors import Fault
from ropewalk.sqs.needs import Creation, Listing, OnQueue
from ropewalk.sqs.needs import Needs as ActionNeeds
from ropewalk.sqs.needs import Right as RightOnQueue
from ropewalk.views.diagnosis.table import SECTIONS

PAGES: Final = Path(__file__).resolve().parent.parent / "docs" / "reference"
_REGION: Final = re.compile(r"(<!-- table: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def rewritten(page: str) -> str:
    """The page with every table as the code has it."""
    return _REGION.sub(lambda match: f"{match[1]}\n{TABLES[match[2]]()}\n{match[3]}", page)


def table_names(page: str) -> set[str]:
    return {match[2] for match in _REGION.finditer(page)}


def main(arguments: list[str]) -> int:
    stale = []
    for path in sorted(PAGES.glob("*.md")):
        before = path.read_text()
        after = rewritten(before)
        if after != before:
            stale.append(path.name)
            if "--check" not in arguments:
                path.write_text(after)
    if stale:
        print(f"{'out of date' if '--check' in arguments else 'rewritten'}: {', '.join(stale)}")
    return 1 if stale and "--check" in arguments else 0


def _apis() -> str:
    rows = []
    for entry in advertised():
        api = next(api for api in SERVED_APIS if api.key == entry.api_key)
        rows.append((str(api.key), api.name, f"{api.version_min}–{api.version_max}", _purpose(api.request)))
    return _table(("key", "API", "versions", "what it does"), rows)


def _rights() -> str:
    rows = []
    for serving in sorted(SERVED, key=lambda each: each.api.key):
        match serving.needs:
            case Nothing(why=why):
                needs, otherwise = "nothing", why
            case OnCluster(operations=operations):
                needs = f"{' or '.join(each.name for each in operations)} on the cluster"
                otherwise = "refused as a whole"
            case Inside(rights=rights, besides=besides):
                needs = ", ".join(_right(each) for each in rights) or "nothing"
                otherwise = besides
        rows.append((serving.api.name, needs, otherwise))
    return _table(("API", "needs", "besides"), rows)


def _right(right: Right) -> str:
    of = right.resource_type.name.lower().replace("_", " ")
    return f"{right.operation.name} {of}{' (hidden)' if right.is_hidden else ''}"


def _purpose(message: type) -> str:
    """What stands behind the colon in the first paragraph of the handler's module, named as the message's is."""
    return _behind_colon(f"ropewalk.kafka.handlers.{message.__module__.rpartition('.')[2]}")


def _behind_colon(name: str) -> str:
    handler = import_module(name)
    documentation = inspect.getdoc(handler)
    assert documentation is not None, f"{handler.__name__} says nothing"
    purpose = " ".join(documentation.partition("\n\n")[0].partition(": ")[2].split())
    assert purpose, f"{handler.__name__} does not begin with a name and a colon"
    return purpose[0].upper() + purpose[1:]


def _topic_settings() -> str:
    rows = (
        (f"`{setting.name}`", _default(setting), _values(setting), _behind(setting), setting.description)
        for setting in sorted(TOPIC_SETTINGS.values(), key=_name)
        if not setting.without_effect
    )
    return _table(("setting", "default", "values", "default comes from", "what it does"), rows)


def _broker_settings() -> str:
    behind = {synonym.name for setting in TOPIC_SETTINGS.values() for synonym in setting.synonyms}
    acting = [
        setting
        for setting in BROKER_SETTINGS.values()
        if setting.name not in behind and not setting.without_effect
    ]
    return _settings_with_change(acting)


def _node_settings() -> str:
    return _settings_with_change(NODE_SETTINGS.values())


def _settings_with_change(settings: Iterable[Setting]) -> str:
    rows = (
        (
            f"`{setting.name}`",
            _default(setting),
            _values(setting),
            _change(setting),
            setting.description,
        )
        for setting in sorted(settings, key=_name)
    )
    return _table(("setting", "default", "values", "set", "what it does"), rows)


def _change(setting: Setting) -> str:
    if setting.agreed:
        return "once" if setting.change is Change.READ_ONLY else "for all brokers"
    return "at start" if setting.change is Change.READ_ONLY else "while it runs"


def _settings_without_effect() -> str:
    names = sorted(
        setting.name
        for setting in (*TOPIC_SETTINGS.values(), *BROKER_SETTINGS.values())
        if setting.without_effect
    )
    return "\n".join(f"- `{name}`" for name in dict.fromkeys(names)) + "\n"


def _name(setting: Setting) -> str:
    return setting.name


def _default(setting: Setting) -> str:
    return "" if setting.default is None else f"`{setting.default}`" if setting.default else "empty"


def _values(setting: Setting) -> str:
    if setting.choices:
        return ", ".join(f"`{choice}`" for choice in setting.choices if choice not in setting.refused)
    kind = setting.kind.name.lower()
    bounds = [
        *([f"≥ {setting.minimum}"] if setting.minimum is not None else []),
        *([f"≤ {setting.maximum}"] if setting.maximum is not None else []),
    ]
    also = f" or {setting.also}" if setting.also is not None else ""
    return f"{kind} {', '.join(bounds)}{also}".strip()


def _behind(setting: Setting) -> str:
    return ", ".join(f"`{synonym.name}`" for synonym in setting.synonyms)


def _errors() -> str:
    meanings = dict(_meanings())
    rows = (
        (f"`{code.name}`", str(int(code)), f"`{error.__name__}`", meanings[error.__name__])
        for error, code in sorted(CODES.items(), key=lambda item: (item[1], item[0].__name__))
    )
    return _table(("Kafka's name", "code", "error", "when"), rows)


def _meanings() -> Iterator[tuple[str, str]]:
    """From the trees at the top of the modules, where each error stands with a few words."""
    for module in (ropewalk.base.errors, ropewalk.groups.errors, ropewalk.transactions.errors):
        for line in (inspect.getdoc(module) or "").splitlines():
            if match := re.fullmatch(r" +(\w+)  +(.+)", line):
                yield match[1], match[2]


def _sqs_actions() -> str:
    return _actions(ACTIONS)


def _own_actions() -> str:
    return _actions(OWN_ACTIONS)


def _actions(actions: Iterable[Action]) -> str:
    rows = []
    for action in actions:
        shape = action.request
        names = dict(zip(shape.__struct_fields__, shape.__struct_encode_fields__, strict=True))
        required = {names[field] for field in shape.REQUIRED}
        parameters = [f"**{name}**" if name in required else name for name in names.values()]
        purpose = _behind_colon(action.request.__module__)
        rows.append((f"`{action.name}`", ", ".join(parameters), _action_needs(action.needs), purpose))
    return _table(("action", "takes", "needs", "what it does"), rows)


def _action_needs(needs: ActionNeeds) -> str:
    match needs:
        case Listing():
            return "nothing (others are hidden)"
        case Creation(said=said):
            needed = "CREATE, or CREATE on the cluster"
        case OnQueue(rights=rights, said=said, is_deletion=is_deletion):
            needed = ", ".join(_right_on_queue(each) for each in rights)
            if is_deletion:
                said = "where `cluster.delete.by` is `admin`, ALTER on the cluster as well"
    return f"{needed}; {said}" if said else needed


def _right_on_queue(right: RightOnQueue) -> str:
    return f"{right.operation.name}{' group' if right.resource_type is ResourceType.GROUP else ''}"


def _sqs_attributes() -> str:
    rows = (
        (
            f"`{attribute.name}`",
            _sqs_values(attribute),
            "" if attribute.default is None else f"`{attribute.default}`",
            "FIFO" if attribute.is_fifo_only else "",
            attribute.description,
        )
        for attribute in ATTRIBUTES.values()
    )
    return _table(("attribute", "values", "default", "queues", "what it says"), rows)


def _sqs_values(attribute: Attribute) -> str:
    if attribute.kind is Kind.INTEGER:
        return f"{attribute.minimum:,} to {attribute.maximum:,}"
    if attribute.kind is Kind.FIGURE:
        return "only read"
    return ", ".join(f"`{choice}`" for choice in attribute.choices) or attribute.kind.value


def _sqs_errors() -> str:
    causes: dict[str, list[str]] = {}
    for error, fault in ropewalk.sqs.errors.FAULTS.items():
        causes.setdefault(fault.query_code, []).append(f"`{error.__name__}`")
    faults = [each for each in vars(ropewalk.sqs.errors).values() if isinstance(each, Fault)]
    rows = (
        (
            f"`{fault.query_code}`",
            f"`{fault.json_type.partition('#')[2]}`",
            str(fault.status.value),
            fault.text or "says what it is about",
            ", ".join(causes.get(fault.query_code, ())),
        )
        for fault in sorted(faults, key=lambda fault: fault.query_code)
    )
    return _table(("Query code", "JSON type", "status", "text", "also for"), rows)


def _limits() -> str:
    """A limit is an assignment followed by the text that says why."""
    rows = []
    body = ast.parse(inspect.getsource(ropewalk.base.limits)).body
    for statement, following in pairwise(body):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            assert isinstance(following, ast.Expr), f"{statement.target.id} has no reason"
            assert isinstance(following.value, ast.Constant), f"{statement.target.id} has no reason"
            value = getattr(ropewalk.base.limits, statement.target.id)
            rows.append(
                (f"`{statement.target.id}`", f"{value:,}", " ".join(str(following.value.value).split()))
            )
    return _table(("limit", "value", "why"), rows)


def _exporter_metrics() -> str:
    return _metrics(metric for metric in METRICS if metric.name.startswith("kafka_"))


def _own_metrics() -> str:
    return _metrics(metric for metric in METRICS if not metric.name.startswith("kafka_"))


def _alerts() -> str:
    parts = []
    for group in GROUPS:
        parts.append(f"## {group.heading}\n")
        for rule in group.rules:
            waits = f" for {duration(rule.for_s)}" if rule.for_s else ""
            parts.append(
                f"### {rule.name}\n\n`{promql(rule.condition)}`{waits}; {rule.severity.value}; seen by {rule.scope.value}.\n\n"
                f"{rule.why}\n\nWhat to do: {rule.remedy}\n"
            )
    return "\n".join(parts)


def _doctor() -> str:
    parts = []
    for heading, rules in SECTIONS:
        parts.append(f"## {heading}\n")
        parts += [
            f"### {rule.name}\n\n{rule.sees} Verdict: {rule.verdict.value}.\n\n{rule.why}\n\n"
            f"Try: {rule.command}. More: [{rule.page.partition('#')[0]}](../{rule.page}).\n"
            for rule in rules
        ]
    return "\n".join(parts)


def _metrics(metrics: Iterable[Metric]) -> str:
    rows = (
        (
            f"`{metric.name}`",
            metric.kind.value,
            ", ".join(f"`{label}`" for label in metric.labels),
            metric.help,
        )
        for metric in metrics
    )
    return _table(("metric", "kind", "labels", "what it tells"), rows)


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


TABLES: Final[dict[str, Callable[[], str]]] = {
    "apis": _apis,
    "rights": _rights,
    "topic-settings": _topic_settings,
    "broker-settings": _broker_settings,
    "node-settings": _node_settings,
    "settings-without-effect": _settings_without_effect,
    "errors": _errors,
    "sqs-actions": _sqs_actions,
    "own-actions": _own_actions,
    "sqs-attributes": _sqs_attributes,
    "sqs-errors": _sqs_errors,
    "limits": _limits,
    "exporter-metrics": _exporter_metrics,
    "own-metrics": _own_metrics,
    "alerts": _alerts,
    "doctor": _doctor,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
