"""The Python client: speaks Kafka's protocol to any broker that does.

`client` is the face of the room: produce, fetch and look up offsets by partition. `admin` creates, alters
and describes; `groups` shows and changes consumer groups from outside. Below them `cluster` knows who leads what and keeps the connections, and `connection` is one
socket with requests in flight. `producer` and `consumer` are what commands and tests use: one topic, one task, no group.

What applications are offered stands on the same ground: `producing` and `consuming` for asyncio, `administration`, `formats`, and
`blocking`, the same without an event loop. `ropewalk` and `ropewalk.aio` name it.

Everything runs on the `Network`, `Clock` and `Rng` ports, so a client lives in the simulator as it lives on
a socket. Importing the package loads nothing; import the module you use.
"""
