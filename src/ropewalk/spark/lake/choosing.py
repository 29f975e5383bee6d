"""Which columns and rows of topics a table gets, and what is hidden of them. Decided in the driver before anything is read, done by tasks.

What a reader could get wrong
    The condition sees rows as they are, masked and left-out columns included. `date`, `hour` and `topic_id` are the table's own and stay.
    Rows that the condition leaves out still move the table's offsets: they were seen, and are not looked at again.
    A value that cannot be read has no columns to be judged or masked by. Where anything inside `value` is chosen, left out or masked, its
    dead letter is written without the value; partition and offset tell where it is.
"""

import os
from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa
from msgspec import Struct

from ropewalk.spark.columns import Column
from ropewalk.spark.lake.conditions import find_column, parse_condition
from ropewalk.spark.lake.masks import SECRET_BYTES_MIN, Drop, Hash, apply, masking, parse_mask
from ropewalk.spark.refusals import WrongUse

SECRET: Final = "ROPEWALK_MASK_SECRET"
_OWN: Final = frozenset({"date", "hour", "topic_id"})


class Choice(Struct, frozen=True, kw_only=True):
    columns: tuple[str, ...] = ()
    """All if none is named."""
    where: str = ""
    masks: dict[str, str] = {}
    secret: bytes = b""

    def __repr__(self) -> str:
        return f"Choice(columns={self.columns}, where={self.where!r}, masks={self.masks})"

    @property
    def is_everything(self) -> bool:
        return not (self.columns or self.where or self.masks)

    @property
    def concerns_values(self) -> bool:
        """Whether a value that cannot be read must not be shown as it is."""
        named = any(each.partition(".")[0].strip("`") == Column.VALUE.value for each in self.masks)
        chosen = bool(self.columns) and Column.VALUE.value not in self.columns
        return named or chosen

    def schema(self, whole: pa.Schema) -> pa.Schema:
        """The columns of the table. `whole` are those of topics, values read."""
        kept = {find_column(each, whole)[0] for each in self.columns}
        dropped = {find_column(each, whole)[0] for each in self._dropped()}
        fields = [_chosen(field, (field.name,), kept, dropped) for field in whole]
        left = [each for each in fields if each is not None]
        if all(each.name in _OWN for each in left):
            raise WrongUse("columns and masks leave no column to be written")
        return pa.schema(left)

    def check(self, whole: pa.Schema) -> None:
        """Refuses, before anything is read, what cannot be done to such rows."""
        of_topics = pa.schema([field for field in whole if field.name not in _OWN])
        self.schema(of_topics)
        Choosing(self, of_topics)
        if len(self.secret) < SECRET_BYTES_MIN and any(
            isinstance(parse_mask(text, name), Hash) for name, text in self.masks.items()
        ):
            raise WrongUse(
                f"a mask is hash, which needs a secret of at least {SECRET_BYTES_MIN} bytes: name a file that holds it with mask_secret_file,"
                f" or set {SECRET}"
            )

    def _dropped(self) -> list[str]:
        return [name for name, text in self.masks.items() if isinstance(parse_mask(text, name), Drop)]


class Choosing:
    """The same for rows of one shape. Not to be handed from process to process."""

    def __init__(self, choice: Choice, rows: pa.Schema) -> None:
        self._condition = parse_condition(choice.where, rows) if choice.where.strip() else None
        self._masks = []
        for name, text in choice.masks.items():
            mask = parse_mask(text, name)
            path, type_ = find_column(name, rows)
            if not isinstance(mask, Drop):
                self._masks.append((path, masking(mask, name, type_, choice.secret)))

    def of(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        if self._condition is not None:
            rows = _filtered(rows, self._condition)
        for path, mask in self._masks:
            at = rows.schema.get_field_index(path[0])
            rows = rows.set_column(at, rows.schema.field(at), apply(rows.column(at), path[1:], mask))
        return rows


def for_letters(choice: Choice, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows whose values could not be read, with as little of them as the table itself may have."""
    value = Column.VALUE.value
    shown = {name: text for name, text in choice.masks.items() if name.partition(".")[0].strip("`") != value}
    rows = Choosing(Choice(masks=shown, secret=choice.secret), rows.schema).of(rows)
    hidden = {name for name, text in shown.items() if isinstance(parse_mask(text, name), Drop)}
    if choice.columns:
        kept = {each.partition(".")[0].strip("`") for each in choice.columns}
        hidden |= {column.value for column in (Column.KEY, Column.HEADERS) if column.value not in kept}
    if choice.concerns_values:
        hidden.add(value)
    for name in hidden & set(rows.schema.names):
        at = rows.schema.get_field_index(name)
        field = rows.schema.field(at)
        rows = rows.set_column(at, field, pa.nulls(rows.num_rows, field.type))
    return rows


def read_secret(file: str | None, environment: Mapping[str, str]) -> bytes:
    """From the file, or the environment; empty if neither has one."""
    if file is None:
        return environment.get(SECRET, "").encode()
    try:
        with open(os.path.expanduser(file), "rb") as opened:
            return opened.read().strip()
    except OSError as error:
        raise WrongUse(f"mask_secret_file cannot be read: {error}") from None


def _filtered(rows: pa.RecordBatch, condition: "pa.compute.Expression") -> pa.RecordBatch:
    left = pa.Table.from_batches([rows]).filter(condition).combine_chunks().to_batches()
    return left[0] if left else rows.slice(0, 0)


def _chosen(
    field: pa.Field,
    path: tuple[str, ...],
    kept: Iterable[tuple[str, ...]],
    dropped: Iterable[tuple[str, ...]],
) -> pa.Field | None:
    """With those of its fields that are wanted; None if it is not."""
    if path in dropped:
        return None
    is_named = not kept or path[0] in _OWN or any(path[: len(each)] == each for each in kept)
    is_above = any(each[: len(path)] == path for each in kept)
    if not is_named and not is_above:
        return None
    if not pa.types.is_struct(field.type):
        return field
    inner = [_chosen(each, (*path, each.name), kept, dropped) for each in field.type]
    left = [each for each in inner if each is not None]
    return field.with_type(pa.struct(left)) if left else None
