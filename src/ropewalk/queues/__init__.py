"""The state of one partition of a queue, as decisions: who is given which message, for how long, and what is settled.

`QueuePartition` is told commands, what was read of the log, and the time. It answers with a `QueueStep`, and gives out what is to be appended as control
records between the messages: deltas, and snapshots in pieces. It owns no socket, file, task or clock.

    core.py        the public face; replay.py  from the log's records to the state it begins with
    commands.py    what is asked; answers.py, errors.py  what is heard; step.py  both together; settings.py, figures.py
    events.py      what is durable; state.py  what that adds up to; event_codec.py, snapshot_codec.py, binary.py  the same as bytes
    sending.py, receiving.py, settling.py   the rules: who comes in, who is given what, which handles count
    moving.py      dead letters, and what else is on its way to another queue; tasking.py  what a move task wants moved
    attempts.py    how attempts are numbered
    deduplication.py   which ids were seen in five minutes
    outlook.py     which messages can be given out now; lines.py, group_line.py, fair_line.py  in which order
    log_clock.py   the log's own time, in which everything is hidden; sent_times.py  when messages were sent, in that time
    due_times.py   when what is due; waiting.py  receives that wait

Invariants
    A message is in exactly one of these: never received, visible, in flight, resting, dying, on its way, settled.
    What is settled is never given out again, unless the queue is rewound.
    FIFO: no message is given out while an earlier one of its group is hidden.
    What is hidden comes back late by the time that nobody led, and never early; only what a standard queue gave out and had not written yet comes back at once.
    A message has at most one move under way, which is repeated under the same identity until its end is certain.
    Replaying a snapshot and the deltas after it rebuilds the durable state exactly.
"""

from ropewalk.queues.core import QueuePartition as QueuePartition
from ropewalk.queues.replay import QueueReplay as QueueReplay
