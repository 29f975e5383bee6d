"""The producer: records in, batches out, acknowledgements back.

`outbox` is the core: queues per partition, sequences, what may be sent and what is sent again. `sender` carries it out over
the connections, `transaction` speaks with the coordinator, and `producer` is the face.
"""
