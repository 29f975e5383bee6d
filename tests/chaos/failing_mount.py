"""An ext4 file system on a device that stops taking writes.

The image is sparse and lies on a file system that can be filled up. From then on the device has no room for a block that it
has not had before: write-back fails, while ext4 itself believes that there is plenty of room and takes what it is given.

What a reader could get wrong
    A loop device takes a write that its file took a part of for one that succeeded, and loses the rest without a word. So it is
    given a page at a time, which its file takes whole or not at all.
"""

import os
import subprocess
from pathlib import Path

from tests.chaos.mounts import _run, _unmount

IMAGE_BYTES = 1 << 29
DEVICE_BYTES = 1 << 28
"""What the image can really hold."""
TABLES_BYTES = 1 << 26
"""Where ext4 keeps its tables and its journal. A node can hear that its data was lost, not that of the file system itself."""
BALLAST_BYTES = 1 << 16


class FailingMount:
    def __init__(self, scratch: Path) -> None:
        self._device = scratch / "device"
        self.path = scratch / "ext4"

    def __enter__(self) -> "FailingMount":
        self._device.mkdir()
        self.path.mkdir()
        _run("mount", "-t", "tmpfs", "-o", f"size={DEVICE_BYTES}", "tmpfs", str(self._device))
        with self._image.open("wb") as file:
            file.truncate(IMAGE_BYTES)
        layout = "packed_meta_blocks=1,lazy_itable_init=0,lazy_journal_init=0"
        _run("mkfs.ext4", "-q", "-J", "size=16", "-E", layout, str(self._image))
        with self._image.open("r+b") as file:  # so that the blocks of the file system's own tables are there
            for _ in range(TABLES_BYTES >> 20):
                piece = file.read(1 << 20)
                file.seek(-len(piece), os.SEEK_CUR)
                file.write(piece)
        self._mount()
        return self

    def __exit__(self, *_: object) -> None:
        _unmount(self.path)
        _unmount(self._device)

    @property
    def _image(self) -> Path:
        return self._device / "image"

    def fail(self) -> None:
        """From here on no block is taken that is not there already."""
        with (self._device / "ballast").open("wb", buffering=0) as ballast:
            try:
                while ballast.write(bytes(BALLAST_BYTES)):
                    pass
            except OSError:
                return  # that is what it is for

    def heal(self) -> bool:
        """The device takes everything again; False if the file system has given up for good, until it is mounted again."""
        (self._device / "ballast").unlink(missing_ok=True)
        probe = self.path / "probe"
        try:
            descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT)
        except OSError:
            return False
        try:
            os.write(descriptor, b"probe")
            os.fsync(descriptor)
        except OSError:
            return False
        finally:
            os.close(descriptor)
        return True

    def mount_again(self) -> None:
        """Let go of all that is cached: what the device never got is gone. Nobody may have a file open."""
        _unmount(self.path)
        subprocess.run(["e2fsck", "-fy", str(self._image)], check=False, capture_output=True)
        self._mount()

    def _mount(self) -> None:
        _run("mount", "-o", "loop,commit=1", str(self._image), str(self.path))
        device = os.stat(self.path).st_dev
        queue = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/queue")
        (queue / "max_sectors_kb").write_text(str(os.sysconf("SC_PAGE_SIZE") >> 10))
