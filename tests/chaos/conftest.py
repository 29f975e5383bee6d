"""What the machine must offer for these tests; what it lacks is said when they are skipped."""

import ctypes.util
import os
import shutil
import subprocess
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


@pytest.fixture(scope="session")
def network_spaces() -> None:
    """Nodes can have networks of their own here, and be cut off."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    for command in ("ip", "nft"):
        if shutil.which(command) is None:
            pytest.skip(f"{command} is not installed")
    space = f"probe{os.getpid()}"
    if subprocess.run(["ip", "netns", "add", space], capture_output=True, check=False).returncode != 0:
        pytest.skip("network namespaces cannot be made here")
    subprocess.run(["ip", "netns", "del", space], capture_output=True, check=True)


@pytest.fixture(scope="session")
def etcd() -> None:
    """Members of etcd can be started here."""
    if shutil.which("etcd") is None:
        pytest.skip("etcd is not installed (Debian: apt-get install etcd-server)")
