"""Whole clusters: real nodes on the simulated network, metadata at home on one of them or in a modelled etcd, real clients.

Slower by far than `sim/cores`, and what it runs is what users run: listeners, links, fetchers, logs on disks that forget.
"""
