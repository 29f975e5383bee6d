"""One file per API, named as Kafka names it: request, response, and `API`, which binds them to their versions.

Structures keep Kafka's names. Fields keep them in snake case, but for a few that recur and read better short:
`throttle_ms`, `topics`, `partitions`, `name` for a topic's name and `index` for a partition's number.
"""
