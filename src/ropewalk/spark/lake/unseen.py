"""Files that tasks have written, looked for by the driver before it names them in a commit."""

from collections.abc import Iterable

from ropewalk.spark.lake.places import Place, local_directory
from ropewalk.spark.lake.table import Target, WrittenFile
from ropewalk.spark.refusals import WrongUse


def refuse_unseen(target: Target, files: Iterable[WrittenFile]) -> None:
    """Tasks on other machines write to a directory of the same name there; a commit would then name files that nobody finds."""
    if local_directory(target.root) is None:
        return
    place = Place(target.root, target.storage)
    for file in files:
        if not place.has(file.path, file.size_bytes):
            raise WrongUse(
                f"{file.path}, which a task wrote below {target.root}, is not there for the driver: nothing was committed."
                " With several machines the table must be on a file system that all of them share, or in an object store"
            )
