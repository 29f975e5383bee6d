"""Where tests let pipelines die or wait."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from signal import SIGKILL

PROGRAM = (
    "from ropewalk.spark.fail_points import reach; reach('here'); print('went on', flush=True); reach('here')"
)


def _started(environment: Mapping[str, str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM], env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True
    )


def test_nothing_happens_at_a_place_that_nobody_named(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").touch()
    started = _started({"ROPEWALK_SPARK_DIE_AT": "elsewhere", "ROPEWALK_SPARK_HALT_IN": str(tmp_path)})
    assert started.communicate(timeout=60)[0] == "went on\n"
    assert started.returncode == 0


def test_a_process_dies_at_the_nth_time_that_it_comes_to_a_place() -> None:
    started = _started({"ROPEWALK_SPARK_DIE_AT": "here", "ROPEWALK_SPARK_DIE_AFTER": "2"})
    assert started.communicate(timeout=60)[0] == "went on\n"
    assert started.returncode == -SIGKILL


def test_one_process_waits_at_a_place_until_it_is_told_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "here").touch()
    one, other = (_started({"ROPEWALK_SPARK_HALT_IN": str(tmp_path)}) for _ in range(2))
    by_pid = {str(each.pid): each for each in (one, other)}
    while not (found := list(tmp_path.glob("here.*"))):
        pass
    (mine,) = found
    waiting = by_pid.pop(mine.suffix.removeprefix("."))
    (passing,) = by_pid.values()
    assert passing.communicate(timeout=60)[0] == "went on\n"
    assert waiting.poll() is None
    mine.unlink()
    assert waiting.communicate(timeout=60)[0] == "went on\n"
