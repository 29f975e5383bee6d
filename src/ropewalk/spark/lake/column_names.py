"""Names that all who read tables can say: schemas of values are freer with them than tables are."""

from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from ropewalk.spark.refusals import WrongUse

_UNSPEAKABLE: Final = frozenset(" ,;{}()\n\t=")
"""Delta refuses them in names of columns, and Parquet's readers trip over them."""


def check_names(fields: Iterable[pa.Field], above: str = "") -> None:
    """Nested ones, too. Most readers do not tell upper from lower case, so two names may not differ in that alone."""
    seen: dict[str, str] = {}
    for field in fields:
        path = above + field.name
        if not field.name or _UNSPEAKABLE & set(field.name):
            raise WrongUse(
                f"{path!r} cannot be the name of a column: it is empty, or has a blank or one of , ; {{ }} ( ) = in it."
                " Leave the field out of the schema"
            )
        twin = seen.setdefault(field.name.casefold(), path)
        if twin != path:
            raise WrongUse(
                f"{path!r} and {twin!r} would be one column to readers that do not tell upper from lower case;"
                " leave one of them out of the schema"
            )
        _check_type(field.type, path)


def _check_type(type_: pa.DataType, path: str) -> None:
    if pa.types.is_struct(type_):
        check_names(type_, f"{path}.")
    elif pa.types.is_list(type_):
        _check_type(type_.value_type, f"{path}[]")
    elif pa.types.is_map(type_):
        _check_type(type_.item_type, f"{path}.*")
