"""What a power cut may and may not leave of files and names."""

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.sim.machines.sometimes import Sometimes
from ropewalk.sim.machines.storage import (
    PAGE_BYTES,
    SECTOR_BYTES,
    Directory,
    Linked,
    Renamed,
    StoredFile,
    Unlinked,
)

seeds = st.integers(0, 2**32)


def filled(size: int, first: int = 1) -> bytes:
    """Bytes without a zero, so that a hole can be told from content."""
    return bytes((first + index) % 255 + 1 for index in range(size))


writes = st.lists(st.integers(1, 3 * PAGE_BYTES), max_size=6)


@given(writes, writes, seeds)
@settings(max_examples=100, deadline=None)
def test_synced_bytes_survive_and_nothing_is_invented(
    synced: list[int], unsynced: list[int], seed: int
) -> None:
    file = StoredFile(1)
    for size in synced:
        file.append(filled(size))
    file.sync()
    durable = bytes(file.data)
    for size in unsynced:
        file.append(filled(size, 7))
    everything = bytes(file.data)

    file.lose_power(random.Random(seed), Sometimes())

    assert file.data[: len(durable)] == durable
    assert len(file.data) <= len(everything)
    for position in range(len(durable), len(file.data)):
        assert file.data[position] in (0, everything[position])


@given(
    st.lists(st.one_of(st.integers(1, 9000), st.integers(-9000, -1), st.none()), max_size=12),
    seeds,
)
@settings(max_examples=150, deadline=None)
def test_appends_truncations_and_syncs_leave_a_history_that_could_have_happened(
    steps: list[int | None], seed: int
) -> None:
    """A model of whole contents: after the cut the size is one the file had, or lies within one write."""
    file = StoredFile(1)
    content = b""
    since_sync = [content]
    for number, step in enumerate(steps):
        if step is None:
            file.sync()
            since_sync = [content]
        elif step > 0:
            content += filled(step, number)
            file.append(filled(step, number))
            since_sync.append(content)
        else:
            content = content[: max(0, len(content) + step)]
            file.truncate(len(content))
            since_sync.append(content)
    assert file.data == content

    file.lose_power(random.Random(seed), Sometimes())

    left = bytes(file.data)
    assert any(_could_be(left, before, after) for before, after in pairwise([since_sync[0], *since_sync]))


def _could_be(left: bytes, before: bytes, after: bytes) -> bool:
    if not min(len(before), len(after)) <= len(left) <= max(len(before), len(after)):
        return False
    return all(byte in (0, *after[i : i + 1], *before[i : i + 1]) for i, byte in enumerate(left))


def _outcomes(sizes: list[int], synced: int = 1000) -> list[bytes]:
    outcomes = []
    for seed in range(400):
        file = StoredFile(1)
        file.append(filled(synced))
        file.sync()
        for size in sizes:
            file.append(filled(size, 9))
        file.lose_power(random.Random(seed), Sometimes())
        outcomes.append(bytes(file.data))
    return outcomes


def test_every_kind_of_outcome_happens() -> None:
    sizes = [3 * PAGE_BYTES, 700, 5 * PAGE_BYTES]
    ends = [1000, 1000 + sizes[0], 1000 + sizes[0] + sizes[1], 1000 + sum(sizes)]
    outcomes = _outcomes(sizes)
    contents = [content[1000:] for content in outcomes]
    assert any(len(content) == 1000 for content in outcomes), "nothing was kept"
    assert any(len(content) == ends[-1] and 0 not in content for content in outcomes), "everything was kept"
    assert any(len(content) in ends[1:-1] and 0 not in content for content in outcomes), "whole writes only"
    torn = [len(content) for content in outcomes if len(content) not in ends]
    assert torn
    assert all(size % SECTOR_BYTES == 0 for size in torn), "torn at a sector"
    assert any(size % PAGE_BYTES for size in torn)
    assert any(content and not any(content) for content in contents), "size extended, content zero"
    holes = [content for content in contents if 0 in content and any(content)]
    assert any(content.rstrip(b"\0")[-1:] and 0 in content.rstrip(b"\0") for content in holes), (
        "a hole before content"
    )


def test_a_hole_never_reaches_into_what_was_synced() -> None:
    assert all(content[:1000] == filled(1000) for content in _outcomes([20_000]))


def test_a_truncation_that_was_not_synced_may_be_undone_unharmed() -> None:
    kept = 0
    for seed in range(200):
        file = StoredFile(1)
        file.append(filled(3 * PAGE_BYTES))
        file.sync()
        file.truncate(100)
        file.lose_power(random.Random(seed), Sometimes())
        assert bytes(file.data) in (filled(3 * PAGE_BYTES), filled(100))
        kept += len(file.data) > 100
    assert 0 < kept < 200


def test_everything_is_cold_after_a_power_cut_and_warm_after_a_read() -> None:
    file = StoredFile(1)
    file.append(filled(3 * PAGE_BYTES))
    file.sync()
    assert file.is_cached(0, 3 * PAGE_BYTES)
    file.lose_power(random.Random(1), Sometimes())
    assert not file.is_cached(0, 1)
    file.read(PAGE_BYTES, 1)
    assert file.is_cached(PAGE_BYTES, PAGE_BYTES)
    assert not file.is_cached(PAGE_BYTES, PAGE_BYTES + 1)
    file.append(b"more")
    assert file.is_cached(3 * PAGE_BYTES, 4)


def test_bit_rot_hides_behind_the_cache_until_the_page_goes_cold() -> None:
    file = StoredFile(1)
    file.append(filled(2 * PAGE_BYTES))
    file.sync()
    file.rot(10, 0x40)
    assert file.read(0, 20) == filled(20)
    file.evict(random.Random(1))
    rotten = file.read(0, 20)
    assert rotten != filled(20)
    assert rotten[10] == filled(20)[10] ^ 0x40
    assert file.read(20, PAGE_BYTES) == filled(2 * PAGE_BYTES)[20 : 20 + PAGE_BYTES]


def test_reading_ahead_warms_what_follows_and_an_eviction_may_be_partial() -> None:
    file = StoredFile(1)
    file.append(filled(20 * PAGE_BYTES))
    file.sync()
    file.evict(random.Random(1))
    file.read(0, 1, ahead_bytes=2 * PAGE_BYTES)
    assert file.is_cached(0, 3 * PAGE_BYTES)
    assert not file.is_cached(3 * PAGE_BYTES, 1)
    file.read(0, 20 * PAGE_BYTES)
    file.evict(random.Random(1), share=0.5)
    assert {file.is_cached(page * PAGE_BYTES, 1) for page in range(20)} == {True, False}


def test_bit_rot_of_a_cold_page_shows_at_once() -> None:
    file = StoredFile(1)
    file.append(filled(PAGE_BYTES))
    file.sync()
    file.evict(random.Random(1))
    file.rot(3, 1)
    assert file.read(3, 1)[0] == filled(4)[3] ^ 1


def test_writing_a_page_again_repairs_it() -> None:
    file = StoredFile(1)
    file.append(filled(100))
    file.sync()
    file.rot(10, 1)
    file.append(b"x")
    file.sync()
    file.lose_power(random.Random(1), Sometimes())
    assert file.read(0, 100) == filled(100)


def test_dirty_pages_are_not_evicted() -> None:
    file = StoredFile(1)
    file.append(filled(PAGE_BYTES))
    file.sync()
    file.append(filled(PAGE_BYTES))
    file.evict(random.Random(1))
    assert not file.is_cached(0, 1)
    assert file.is_cached(PAGE_BYTES, PAGE_BYTES)


def test_after_a_failed_sync_the_cache_lies_and_the_next_sync_does_not_help() -> None:
    damaged = 0
    for seed in range(50):
        rng = random.Random(seed)
        file = StoredFile(1)
        file.append(filled(3 * PAGE_BYTES))
        file.fail_sync(rng)
        assert file.read(0, 3 * PAGE_BYTES) == filled(3 * PAGE_BYTES)
        file.sync()
        file.lose_power(rng, Sometimes())
        damaged += file.read(0, 3 * PAGE_BYTES) != filled(3 * PAGE_BYTES)
    assert damaged > 30


def _names_left(seed: int) -> tuple[str, ...]:
    directory = Directory()
    directory.change(Linked("kept", StoredFile(0)))
    directory.sync()
    directory.change(Linked("a.tmp", StoredFile(1)))
    directory.change(Renamed("a.tmp", "a"))
    directory.change(Linked("b", StoredFile(2)))
    directory.change(Unlinked("kept"))
    directory.lose_power(random.Random(seed), Sometimes())
    return tuple(sorted(directory.entries))


def test_names_are_kept_in_order_and_renames_are_atomic() -> None:
    assert {_names_left(seed) for seed in range(300)} == {
        ("kept",),
        ("a.tmp", "kept"),
        ("a", "kept"),
        ("a", "b", "kept"),
        ("a", "b"),
    }


@pytest.mark.parametrize("seed", range(20))
def test_a_synced_directory_keeps_its_names(seed: int) -> None:
    directory = Directory()
    directory.change(Linked("a", StoredFile(1)))
    directory.change(Renamed("a", "b"))
    directory.sync()
    directory.lose_power(random.Random(seed), Sometimes())
    assert list(directory.entries) == ["b"]


def test_a_replaced_file_comes_back_if_the_rename_is_lost() -> None:
    contents = set()
    for seed in range(100):
        directory = Directory()
        former, latter = StoredFile(1), StoredFile(2)
        for file, content in ((former, b"former"), (latter, b"latter")):
            file.append(content)
            file.sync()
        directory.change(Linked("f", former))
        directory.sync()
        directory.change(Linked("f.tmp", latter))
        directory.change(Renamed("f.tmp", "f"))
        directory.lose_power(random.Random(seed), Sometimes())
        survivor = directory.entries["f"]
        assert isinstance(survivor, StoredFile)
        contents.add(bytes(survivor.data))
    assert contents == {b"former", b"latter"}


def test_to_write_a_page_again_is_of_no_use_after_a_failed_sync_before_it_has_left_the_cache() -> None:
    """As on ext4, which writes to blocks that it goes on calling unwritten."""
    lost = mended = 0
    for seed in range(50):
        rng = random.Random(seed)
        for drops in (False, True):
            file = StoredFile(1)
            file.append(filled(3 * PAGE_BYTES))
            file.fail_sync(rng)
            if drops:
                file.evict(rng)
            content = file.read(0, 3 * PAGE_BYTES)
            file.rewrite(0, 3 * PAGE_BYTES)
            file.sync()
            file.lose_power(rng, Sometimes())
            is_as_read = file.read(0, 3 * PAGE_BYTES) == content
            lost += not drops and not is_as_read
            mended += drops and is_as_read
    assert lost > 30
    assert mended == 50
