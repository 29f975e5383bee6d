"""The Kafka door: bytes of Kafka's wire protocol in, calls on the broker, bytes out.

It translates and holds no rule about topics, offsets or replicas. `connection.py` cuts frames and keeps
answers in order, `apis.py` lists what is served, `handlers/` has one file per API, `errors.py` spells the
engine's errors in Kafka's codes.
"""
