"""A program that hosts members of groups: one client library, a thread for each member, told what to do by lines.

    python -m tests.compat.group_members confluent-kafka

`java/GroupMembers.java` is the same program on Kafka's own client; `crew.py` starts both and speaks with them.

Commands, on stdin                       Events, on stdout
    join NAME key=value …                    NAME assigned TOPIC:PARTITION …
    commit NAME                              NAME revoked TOPIC:PARTITION …
    seek NAME TOPIC:PARTITION:OFFSET         NAME lost TOPIC:PARTITION …
    leave NAME                               NAME read TOPIC:PARTITION:OFFSET …
                                             NAME committed
                                             NAME refused ERROR
                                             NAME left

A member says what it has read before it asks for more. The end of stdin makes every member leave. SIGUSR1 has every thread say on stderr
where it is.
"""

import faulthandler
import os
import queue
import signal
import sys
import threading
import traceback

from tests.compat.members import MEMBERS, Member, Options, Position, Refused, Say, commit_or_say

_printing = threading.Lock()


def _say_as(name: str) -> Say:
    def say(*words: object) -> None:
        with _printing:
            print(name, *words, flush=True)

    return say


def serve(kind: type[Member], options: Options, orders: "queue.SimpleQueue[list[str]]", say: Say) -> None:
    """The life of one member, in a thread of its own."""
    member = kind(options, say)
    is_leaving = False
    while True:
        match _next(orders):
            case ["leave"]:
                is_leaving = True
            case ["commit"]:
                if commit_or_say(member, say):
                    say("committed")
            case ["seek", position]:
                topic, partition, offset = position.split(":")
                member.seek(Position(topic, int(partition), int(offset)))
        if is_leaving and (options.commit != "revoked" or _is_settled(member, say)):
            member.close()
            say("left")
            return
        try:
            positions = member.poll()
        except Refused as error:  # fenced for good: nothing more will come
            say("refused", error)
            continue
        if positions:
            say("read", *positions)


def _next(orders: "queue.SimpleQueue[list[str]]") -> list[str]:
    try:
        return orders.get_nowait()
    except queue.Empty:
        return []


def _is_settled(member: Member, say: Say) -> bool:
    """Commits; False where that should be tried again after the next poll."""
    try:
        member.commit()
    except Refused as error:
        if error.is_passing:
            return False
        say("refused", error)
    return True


def main() -> None:
    kind = MEMBERS[sys.argv[1]]
    orders: dict[str, queue.SimpleQueue[list[str]]] = {}
    threads: list[threading.Thread] = []
    for line in sys.stdin:
        command, name, *words = line.split()
        if command == "join":
            orders[name] = queue.SimpleQueue()
            serving = (kind, Options.parse(words), orders[name], _say_as(name))
            threads.append(threading.Thread(target=serve, args=serving))
            threads[-1].start()
        else:
            orders[name].put([command, *words])
    for waiting in orders.values():
        waiting.put(["leave"])
    for thread in threads:
        thread.join()
    os._exit(0)  # everything is said; a client that cannot be ended would keep the program from ending


def _end_with(failure: threading.ExceptHookArgs) -> None:
    print(
        failure.exc_type, failure.exc_value, file=sys.stderr
    )  # confluent-kafka may raise what is no exception
    traceback.print_tb(failure.exc_traceback)
    os._exit(1)


if __name__ == "__main__":
    # A member that fails for a reason nobody foresaw takes the whole program with it, and the test sees why.
    threading.excepthook = _end_with
    faulthandler.register(signal.SIGUSR1)
    main()
