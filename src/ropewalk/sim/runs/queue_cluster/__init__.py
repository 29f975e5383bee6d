"""Queues on clusters of whole nodes: clients of the SQS door, on whichever node, while nodes and front ends fail.

sorts              the queues of a run
visitor            a client's way to the doors
lives              which leaders there were, and when
ledger             what clients were told of one queue, and the rules that no run may break
senders, receivers the clients
blows              what befalls leaders of queues and front ends beside what befalls any cluster
closing            a queue is emptied at rest, and then nothing may wait
scenario           one run of it all
"""
