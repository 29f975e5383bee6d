"""Machines, networks and disks without real time, made from one seed: what everything that is simulated stands on.

trace, sometimes    what happened in a run, as one hash, and what must happen in some run
process             who was alive to see it
fence, loop         the event loop with virtual time and seeded scheduling; no way out to the real world
exertion            how much a node computes in one turn of that loop
transport, network  connections between named hosts
storage, platters, disk, durable_batches
                    files with a page cache above a platter; what a power cut leaves of them, and what of it may rot
world               machines and their processes: start, kill, cut the power, start again
etcd, etcd_state    a modelled etcd, three members of it on the simulated network
"""
