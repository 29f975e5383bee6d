"""Clusters of whole nodes: the real thing from its listeners down, on simulated machines, under faults.

`ropewalk-sim --cluster` runs it. What is decided by cores alone is tried far more often in `sim/runs/cores`; here it is seen
whether everything around them keeps the promises: sockets, disks, group commits, fetchers, images, and the modelled etcd.
"""
