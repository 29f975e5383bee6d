"""What is asked of leaders and coordinators by topic, partition and group, each call repeated where that is safe.

client              the face of the lower half: produce, fetch and look up offsets
produce, fetch, list_offsets, group_offsets, log_sizes
                    one conversation each
partitioner         which partition a key belongs to
aborted, newest     what of an answer counts: not what was aborted, and the newest record of a key
together            several calls at once
"""
