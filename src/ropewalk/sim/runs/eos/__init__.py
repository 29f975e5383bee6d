"""Exactly once, tried: transactions, groups and plain clients over a cluster of whole nodes, and the proof of what they saw.

`ropewalk-sim --eos` runs it, in the manner of Jepsen's test of Kafka. What clients asked and were told is a history, which goes to
`judges/eos`. Here are the clients, the topics that only some of them use, and one run from empty disks to a verdict.
"""
