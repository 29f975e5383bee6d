"""The command line of a mover that dies, as by `kill -9`, when the move has called a function so many times.

    mortal_mover.py CALLS ARGUMENTS…

By the clock nearly every instant falls into its start or its end: what lies between the two homes takes a few milliseconds. One that
comes to its end says on its standard error how many calls it made.
"""

import os
import signal
import sys
from types import FrameType

from ropewalk.cli.main import main
from ropewalk.metadata import moving


class Mortal:
    def __init__(self, calls: int) -> None:
        self._calls_max = calls
        self.calls = 0

    def look(self, frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and (self.calls or frame.f_code is moving.move.__code__):
            self.calls += 1
            if self.calls > self._calls_max:
                os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    mortal = Mortal(int(sys.argv.pop(1)))
    sys.setprofile(mortal.look)
    try:
        main()
    finally:
        print(f"calls {mortal.calls}", file=sys.stderr)
