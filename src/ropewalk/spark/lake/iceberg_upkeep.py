"""What keeps a table of Iceberg healthy: files replaced in one snapshot, manifests joined, snapshots forgotten and everything that only they named deleted.

What a reader could get wrong
    pyiceberg forgets snapshots and deletes no file, and its own way to replace files joins no manifests. Both are made of its parts here.
    A manifest list, a manifest or a data file is deleted when no snapshot that is kept names it. One that no snapshot has ever named may be of a
    commit or a batch under way; it is found by listing directories, and must be old.
    Manifests are joined like data files are: the smallest ones together, so that a large one is not written anew for every few files. Those that
    the same snapshot writes wait for the next one.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestContent, ManifestEntryStatus, ManifestFile
from pyiceberg.table import Table, Transaction
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update.snapshot import _OverwriteFiles
from pyiceberg.typedef import EMPTY_DICT

MANIFESTS_JOINED_MIN: Final = 8
"""So many small ones are joined: a commit adds one, and every commit writes the list of all."""

MANIFEST_BYTES_MAX: Final = 4 << 20
"""A manifest that is as large stays as it is: some ten thousand files, which readers pass over at once by their dates."""

MANIFEST_BYTES_TINY: Final = 64 << 10


class Replacement(_OverwriteFiles):
    """A snapshot in which files have taken the place of others, or files are gone, and small manifests are one."""

    def __init__(
        self, change: Transaction, io: FileIO, summary: dict[str, str], *, deletes_rows: bool
    ) -> None:
        super().__init__(
            operation=Operation.DELETE if deletes_rows else Operation.OVERWRITE,
            transaction=change,
            io=io,
            snapshot_properties=summary,
        )
        self._deletes_rows = deletes_rows

    def _summary(self, snapshot_properties: dict[str, str] = EMPTY_DICT) -> Summary:
        """pyiceberg can reckon with the other operations only; whoever reads changes has to know that there is none."""
        summary = super()._summary(snapshot_properties)
        if self._deletes_rows:
            return summary
        return Summary(Operation.REPLACE, **summary.additional_properties)

    def _process_manifests(self, manifests: list[ManifestFile]) -> list[ManifestFile]:
        written = set(self._written_manifests)
        rest = [each for each in manifests if not _is_data(each) or each.manifest_path in written]
        by_spec: dict[int, list[ManifestFile]] = {}
        for each in manifests:
            if _is_data(each) and each.manifest_path not in written:
                by_spec.setdefault(each.partition_spec_id, []).append(each)
        for spec_id, found in by_spec.items():
            small = alike(found)
            rest += [each for each in found if each not in small]
            rest += [self._joined(spec_id, small)] if small else []
        return rest

    def _joined(self, spec_id: int, manifests: Iterable[ManifestFile]) -> ManifestFile:
        with self.new_manifest_writer(self.spec(spec_id)) as writer:
            for manifest in manifests:
                for entry in self.fetch_manifest_entry(manifest, discard_deleted=True):
                    assert entry.status != ManifestEntryStatus.DELETED
                    writer.existing(entry)
        return writer.to_manifest_file()


def alike(manifests: Iterable[ManifestFile]) -> list[ManifestFile]:
    """Those that are worth joining: the smallest ones, and larger ones as long as the smaller are as much together."""
    taken: list[ManifestFile] = []
    total = 0
    for each in sorted(manifests, key=lambda each: each.manifest_length):
        if (
            each.manifest_length > max(total, MANIFEST_BYTES_TINY)
            or each.manifest_length > MANIFEST_BYTES_MAX
        ):
            break
        taken.append(each)
        total += each.manifest_length
    return taken if len(taken) >= MANIFESTS_JOINED_MIN else []


def _is_data(manifest: ManifestFile) -> bool:
    return manifest.content == ManifestContent.DATA


class Named(Struct, frozen=True):
    """Everything that some snapshots name, by whole addresses."""

    metadata: frozenset[str]
    """Manifest lists and manifests."""
    data: frozenset[str]


def named_by(snapshots: Iterable[Snapshot], io: FileIO, *, besides: Named | None = None) -> Named:
    """A snapshot of no file, such as a batch of nothing leaves, has no manifest. `besides`: what need not be looked into."""
    known = frozenset() if besides is None else besides.metadata
    lists: set[str] = set()
    manifests: dict[str, ManifestFile] = {}
    for snapshot in snapshots:
        lists.add(snapshot.manifest_list)
        manifests |= {each.manifest_path: each for each in snapshot.manifests(io)}
    data = {
        entry.data_file.file_path
        for path, manifest in manifests.items()
        if path not in known
        for entry in manifest.fetch_manifest_entry(io, discard_deleted=True)
    }
    return Named(frozenset(lists | manifests.keys()), frozenset(data))


def metadata_files(table: Table) -> set[str]:
    """The newest state and those before it that it remembers, and what belongs to it besides."""
    found = {table.metadata_location, *(each.metadata_file for each in table.metadata.metadata_log)}
    return found | {each.statistics_path for each in table.metadata.statistics}
