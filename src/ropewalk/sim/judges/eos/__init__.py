"""The judge of exactly once, in the manner of Jepsen's test of Kafka: it takes a history of transactions and nothing else.

history             what clients of transactions asked and were told
records             that history put in order
polls, visibility, offsets, log_walk, cycles
                    one question each: order within a process, who may see what, committed offsets, the log itself, circles
checker             all of them
"""
