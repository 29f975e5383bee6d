"""Ropewalk beside its peers: the same load, on the same machine, in the same run.

`bench/kafka` compares with Apache Kafka, also with groups and fetch sessions, `bench/partitions` draws the curve of durable writes over partitions,
`bench/scale` looks at one node with thousands of topics and connections, `bench/etcd` at what a change of metadata costs.
Figures of different runs or machines are not comparable; ratios taken in one run are. What was measured last is
in `docs/performance.md`.
"""
