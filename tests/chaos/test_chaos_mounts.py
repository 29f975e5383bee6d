"""The file systems forget exactly what was not synced."""

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chaos.lossy_tree import LossyTree
from tests.chaos.mounts import CuttableMount, Ext4Mount, LossyMount

pytestmark = pytest.mark.chaos


@pytest.fixture(params=["lossy", "ext4"])
def mount(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CuttableMount]:
    if request.param == "lossy":
        request.getfixturevalue("fuse")
        context: LossyMount | Ext4Mount = LossyMount(tmp_path, seed=1)
    else:
        request.getfixturevalue("loop_devices")
        context = Ext4Mount(tmp_path)
    with context as mounted:
        yield mounted


def write(path: Path, data: bytes, *, sync: bool) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, data)
        if sync:
            os.fdatasync(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def test_bytes_that_were_synced_stay_and_others_vanish(mount: CuttableMount) -> None:
    file = mount.path / "file"
    write(file, b"synced", sync=True)
    sync_directory(mount.path)
    write(file, b" and not", sync=False)
    assert file.read_bytes() == b"synced and not"
    mount.cut_power()
    assert file.read_bytes() == b"synced"


def test_a_name_that_was_not_synced_vanishes(mount: CuttableMount) -> None:
    (mount.path / "kept").mkdir()
    sync_directory(mount.path)
    write(mount.path / "kept" / "file", b"bytes", sync=False)
    (mount.path / "lost").mkdir()
    mount.cut_power()
    assert [path.name for path in mount.path.iterdir() if path.name != "lost+found"] == ["kept"]
    assert list((mount.path / "kept").iterdir()) == []


def test_a_rename_holds_once_the_directory_is_synced(mount: CuttableMount) -> None:
    for name in ("first", "second"):
        write(mount.path / name, name.encode(), sync=True)
    sync_directory(mount.path)
    (mount.path / "first").rename(mount.path / "renamed")
    sync_directory(mount.path)
    (mount.path / "second").rename(mount.path / "renamed")
    mount.cut_power()
    assert (mount.path / "renamed").read_bytes() == b"first"
    assert (mount.path / "second").read_bytes() == b"second"


def test_life_goes_on_after_a_power_cut(mount: CuttableMount) -> None:
    file = mount.path / "file"
    for number in range(5):
        write(file, b"%d" % number, sync=True)
        sync_directory(mount.path)
        mount.cut_power()
    assert file.read_bytes() == b"01234"


def test_syncfs_reaches_the_device_of_an_ext4_image(loop_devices: None, tmp_path: Path) -> None:
    with Ext4Mount(tmp_path) as mount:
        write(mount.path / "file", b"bytes", sync=False)
        descriptor = os.open(mount.path, os.O_RDONLY)
        assert ctypes.CDLL(None).syncfs(descriptor) == 0
        os.close(descriptor)
        mount.cut_power()
        assert (mount.path / "file").read_bytes() == b"bytes"


def test_an_open_file_that_was_removed_can_still_be_read_and_written(fuse: None, tmp_path: Path) -> None:
    with LossyMount(tmp_path, seed=1) as mount, (mount.path / "file").open("w+b", buffering=0) as file:
        file.write(b"bytes")
        (mount.path / "file").unlink()
        file.seek(0)
        assert file.read() == b"bytes"
        assert list(mount.path.iterdir()) == []


@given(st.lists(st.tuples(st.sampled_from(["append", "truncate", "sync", "cut"]), st.integers(0, 20))))
def test_a_file_after_a_cut_is_what_it_was_when_it_was_last_synced(steps: list[tuple[str, int]]) -> None:
    tree = LossyTree()
    file = tree.create("/file")
    tree.root.sync()
    content, synced = b"", b""
    for number, (step, size) in enumerate(steps):
        match step:
            case "append":
                data = bytes([number % 256]) * size
                file.write(data, len(file.content))
                content += data
            case "truncate":
                file.truncate(size)
                content = content[:size].ljust(size, b"\0")
            case "sync":
                file.sync()
                synced = content
            case _:
                tree.power_cut()
                content = synced
        assert bytes(tree.file("/file").content) == content


@given(st.binary(max_size=50), st.binary(max_size=50), st.integers(0, 1000))
def test_a_torn_cut_keeps_what_was_synced_and_any_part_of_the_rest(
    synced: bytes, unsynced: bytes, seed: int
) -> None:
    tree = LossyTree()
    file = tree.create("/file")
    tree.root.sync()
    file.write(synced, 0)
    file.sync()
    file.write(unsynced, len(synced))
    tree.create("/other")
    tree.power_cut(Random(seed))
    left = bytes(tree.file("/file").content)
    assert left.startswith(synced)
    assert (synced + unsynced).startswith(left)


def test_torn_cuts_differ() -> None:
    outcomes: set[tuple[int, bool]] = set()
    for seed in range(50):
        tree = LossyTree()
        file = tree.create("/file")
        tree.root.sync()
        file.write(bytes(100), 0)
        tree.create("/other")
        tree.power_cut(Random(seed))
        outcomes.add((len(file.content), "other" in tree.root.entries))
    assert {(0, True), (0, False), (100, True), (100, False)} < outcomes
