"""Exactly once, tried: transactions, groups and plain clients over a cluster of whole nodes, and the proof of what they saw.

`ropewalk-sim --eos` runs it, in the manner of Jepsen's test of Kafka. What clients asked and were told is a history
(`history`); `checker` and what it is made of (`records`, `polls`, `visibility`, `offsets`, `log_walk`, `cycles`) take a history
and nothing else. The rest is clients, trouble, and one run from empty disks to a verdict.
"""
