"""The Python client: speaks Kafka's protocol to any broker that does, and the SQS API to queues.

What applications are offered: `producing` and `consuming` for asyncio, `queues` over the SQS API, `administration`, `formats`, and `blocking`, the same without an
event loop. `ropewalk` and `ropewalk.aio` name it. It stands on a lower half that the command line and nodes use as well: `calls`, by
partition and group, over `connections`, which know who leads what. `producer` and `consumer` are what commands and tests
use: one topic, one task, no group.

Everything runs on the `Network`, `Clock` and `Rng` ports, so a client lives in the simulator as it lives on
a socket. Importing the package loads nothing; import the module you use.
"""
