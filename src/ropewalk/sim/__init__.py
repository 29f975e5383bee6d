"""Whole nodes in a world without real time: every run follows from one seed and can be repeated exactly.

`World` gives each simulated machine a set of ports: a clock that jumps, a network that is slow, cut and
reset, a disk that forgets what was not synced. The node above them is the one that runs in production.

Layers of this room, lowest first
    judges      what clients were told, and the proof that nothing promised was broken
    machines    loop, network, disks and the processes on them: start, kill, cut the power, start again
    clients     who works with one node and notes what it was told
    runs        `node`, `cluster`, `eos` and `cores`: clients, trouble, and one run from empty disks to a verdict
    main        many runs, and what they saw
"""
