"""A cluster of cores on an event queue: the real rules of replication and of the controller, and everything else a model.

No event loop, no bytes, no files: a second of a cluster costs milliseconds, so thousands of seeds can be tried. What is real
here is `replication`, `controller`, `metadata.image` and `log.epochs`; processes, disks, the network and the metadata
home are models that do what theirs may do at worst.

    queue, network        time, and messages that are late, lost, twice
    replica_log, machine  what outlives a process, and what does not outlive a power cut
    home                  the metadata log: compare-and-set, unknown outcomes, watches, snapshots
    seat, leading, following, replicas, process
                          a node: the controller's seat, replicas in their roles, what carries them
    truth, judge, rest    what was promised, and the rules that no run may break
    clients, administrator, faults, scenario
                          who works, who meddles, what goes wrong, and one run of it all
"""
