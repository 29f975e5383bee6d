"""The Python client: speaks Kafka's protocol to any broker that does.

`client` is the face of the room: produce, fetch and look up offsets by partition. `admin` creates, alters
and describes; `groups` shows and changes consumer groups from outside. Below them `cluster` knows who leads what and keeps the connections, and `connection` is one
socket with requests in flight. `producer` and `consumer` add what a person at a command line wants:
partitions chosen by key, batches, sequences, positions.

Everything runs on the `Network`, `Clock` and `Rng` ports, so a client lives in the simulator as it lives on
a socket. Importing the package loads nothing; import the module you use.
"""
