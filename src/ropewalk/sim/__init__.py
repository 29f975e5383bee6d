"""Whole nodes in a world without real time: every run follows from one seed and can be repeated exactly.

`World` gives each simulated machine a set of ports: a clock that jumps, a network that is slow, cut and
reset, a disk that forgets what was not synced. The node above them is the one that runs in production.

Layers of this room, lowest first
    trace, process      what happened, and who was alive to see it
    fence, loop         the event loop with virtual time and seeded scheduling; no way out to the real world
    transport, network  connections between named hosts
    storage, platters, disk
                        files with a page cache above a platter; what a power cut leaves of them
    world               machines and their processes: start, kill, cut the power, start again
    history, checker, keys; group_history, group_checker
                        what clients were told, and the proof that nothing promised was broken
    workload, producers, consumers, group_members, faults, scenario, main
                        clients, trouble, and one run from an empty disk to a verdict
"""
