"""What nodes say to each other, in Kafka's frames: one file per API, as in `messages/`.

Their keys begin at 10000, where Kafka has none. They are answered on the internal listener alone, on connections that
proved the cluster's secret. Replicas are fetched with Kafka's own Fetch, on the same listener.
All nodes of a cluster may be one version apart, so fields are only ever added, in a new version.
"""
