"""What the machine must offer for these tests; what it lacks is said when they are skipped."""

import ctypes.util
import os
import shutil
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def fuse() -> None:
    """FUSE can be used here."""
    if os.geteuid() != 0:
        pytest.skip("mounting a FUSE file system needs root")
    if not Path("/dev/fuse").exists():
        pytest.skip("there is no /dev/fuse")
    if ctypes.util.find_library("fuse") is None:
        pytest.skip("libfuse2 is not installed (Debian: apt-get install libfuse2)")


@pytest.fixture(scope="session")
def loop_devices() -> None:
    """Images can be mounted here."""
    if os.geteuid() != 0:
        pytest.skip("mounting an image needs root")
    if not Path("/dev/loop-control").exists():
        pytest.skip("there are no loop devices")
    for command in ("mkfs.ext4", "mount", "umount"):
        if shutil.which(command) is None:
            pytest.skip(f"{command} is not installed")
