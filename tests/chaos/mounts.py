"""File systems whose power can be cut.

Both offer the same: `path`, a directory for a node's data, and `cut_power`, to be called once the node no longer
writes. After it, `path` holds what a machine would find when it comes back.
"""

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

IMAGE_BYTES = 1 << 29
MOUNTED_WITHIN_S = 10.0
ENDED_WITHIN_S = 2.0
REPOSITORY = Path(__file__).parents[2]


class CuttableMount(Protocol):
    path: Path

    def cut_power(self) -> None: ...


class LossyMount:
    """The FUSE file system of `lossy_fs.py`. Every other cut is torn."""

    def __init__(self, scratch: Path, seed: int) -> None:
        self.path = scratch / "lossy"
        self._seed = seed
        self._cuts = 0

    def __enter__(self) -> "LossyMount":
        self.path.mkdir()
        command = [sys.executable, "-m", "tests.chaos.lossy_fs", str(self.path), str(self._seed)]
        self._process = subprocess.Popen(command, cwd=REPOSITORY)
        deadline = time.monotonic() + MOUNTED_WITHIN_S
        while not os.path.ismount(self.path):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.path} was not mounted")
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        _unmount(self.path)
        try:
            self._process.wait(timeout=ENDED_WITHIN_S)
        except subprocess.TimeoutExpired:
            # Another mount namespace, of a node with wires of its own, may have been made while this was mounted. It keeps it.
            self._process.terminate()
            self._process.wait(timeout=MOUNTED_WITHIN_S)

    def cut_power(self) -> None:
        self._process.send_signal(signal.SIGUSR2 if self._cuts % 2 else signal.SIGUSR1)
        self._cuts += 1
        deadline = time.monotonic() + MOUNTED_WITHIN_S
        while os.stat(self.path / ".power-cuts").st_size != self._cuts:
            if time.monotonic() > deadline:
                raise RuntimeError("the file system did not hear that its power was cut")

    @property
    def forgotten_bytes(self) -> int:
        return os.stat(self.path / ".lost-bytes").st_size


class Ext4Mount:
    """An ext4 file system in a file. A power cut copies the file as it is and goes on with the copy.

    What ext4 has not yet given to its device is not in the copy, so it tells `syncfs` and `fsync` that reach the
    device from those that do not. The copy counts only if the device was not written to meanwhile.
    """

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._generation = 0
        self.path = scratch / "ext4"

    def __enter__(self) -> "Ext4Mount":
        self.path.mkdir()
        image = self._image()
        with image.open("wb") as file:
            file.truncate(IMAGE_BYTES)
        _run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", str(image))
        self._mount()
        return self

    def __exit__(self, *_: object) -> None:
        _unmount(self.path)
        self._image().unlink()

    def cut_power(self) -> None:
        self.cut_power_of_frozen(lambda: None)

    def cut_power_of_frozen(self, end_users: Callable[[], None]) -> None:
        """As `cut_power`, while processes that have files open are merely frozen; `end_users` is then to end them."""
        crashed, copy = self._image(), self._scratch / f"{self._generation + 1}.img"
        while True:
            before = self._device_writes()
            _run("cp", "--sparse=always", str(crashed), str(copy))
            if self._device_writes() == before:
                break
        end_users()
        _unmount(self.path)
        crashed.unlink()
        self._generation += 1
        self._mount()

    def _image(self) -> Path:
        return self._scratch / f"{self._generation}.img"

    def _mount(self) -> None:
        # The journal is committed by syncing only, not by the clock, so that nothing survives by luck.
        _run("mount", "-o", "loop,commit=300", str(self._image()), str(self.path))

    def _device_writes(self) -> str:
        """Writes the loop device has begun and finished so far, from the kernel's own counters."""
        device = os.stat(self.path).st_dev
        statistics = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat").read_text().split()
        return ",".join(statistics[4:9])


class SmallMount:
    """An ext4 file system in a file, with little room, of which somebody else may take all that is left."""

    def __init__(self, scratch: Path, size_bytes: int) -> None:
        self._image = scratch / "small.img"
        self._size_bytes = size_bytes
        self.path = scratch / "small"
        self._ballast = self.path / "ballast"

    def __enter__(self) -> "SmallMount":
        self.path.mkdir()
        with self._image.open("wb") as file:
            file.truncate(self._size_bytes)
        # No blocks for root alone: nodes run as root here, and others would find the disk full before them.
        _run("mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0", str(self._image))
        _run("mount", "-o", "loop", str(self._image), str(self.path))
        return self

    def __exit__(self, *_: object) -> None:
        _unmount(self.path)
        self._image.unlink()

    @property
    def free_bytes(self) -> int:
        status = os.statvfs(self.path)
        return status.f_bavail * status.f_frsize

    def fill(self) -> None:
        """To the last block; whoever frees some meanwhile loses it again."""
        with self._ballast.open("ab", buffering=0) as file:
            for piece in (1 << 20, 1 << 12, 1):
                try:
                    while file.write(bytes(piece)):
                        pass
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
            with suppress(OSError):  # what was written counts when it has its blocks
                os.fsync(file.fileno())

    def empty(self) -> None:
        self._ballast.unlink(missing_ok=True)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def _unmount(path: Path) -> None:
    deadline = time.monotonic() + MOUNTED_WITHIN_S
    while subprocess.run(["umount", str(path)], capture_output=True, check=False).returncode != 0:
        if time.monotonic() > deadline:
            _run("umount", "--lazy", str(path))
            return
        time.sleep(0.05)
