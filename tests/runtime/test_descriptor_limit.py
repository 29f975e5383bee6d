"""A node allows itself as many open files as it may have."""

import subprocess
import sys

import pytest

PROGRAM = """
import resource
from ropewalk.runtime.process import raise_descriptor_limit
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
raise_descriptor_limit()
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(("soft", "hard"), [(100, 500), (500, 500)])
def test_the_limit_is_raised_to_what_is_allowed(soft: int, hard: int) -> None:
    program = PROGRAM.format(soft=soft, hard=hard)
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["500", "500"]
