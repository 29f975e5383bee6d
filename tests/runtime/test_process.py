"""What the process says of itself agrees with what the kernel says elsewhere."""

import os
import time

import pytest

from ropewalk.runtime.process import SystemProcess, is_tested_python


def test_usage_is_that_of_this_process() -> None:
    before = SystemProcess().usage()
    read_end, write_end = os.pipe()
    held = b"\x01" * 50_000_000  # zeros would not be given pages
    deadline_s = time.process_time() + 0.05
    while time.process_time() < deadline_s:
        pass
    after = SystemProcess().usage()
    os.close(read_end)
    os.close(write_end)
    assert after.descriptor_count == before.descriptor_count + 2
    assert after.resident_bytes - before.resident_bytes > len(held) // 2
    assert after.cpu_user_s + after.cpu_system_s > before.cpu_user_s + before.cpu_system_s
    assert 0 < after.started_at_s < time.time()
    assert after.descriptor_count_max >= after.descriptor_count


@pytest.mark.parametrize(
    ("version", "is_tested"), [((3, 11), True), ((3, 13), True), ((3, 14), False), ((4, 0), False)]
)
def test_a_version_of_python_that_was_not_tested_is_known_as_such(
    version: tuple[int, int], is_tested: bool
) -> None:
    assert is_tested_python(version) is is_tested
