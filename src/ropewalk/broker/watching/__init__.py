"""How the node and its cluster are: figures, samples, and three questions about health.

    health.py, cluster_health.py   is the node alive, ready and well; is the cluster
    node_figures.py, partition_figures.py, membership_figures.py, group_figures.py, transaction_figures.py   what /metrics says
    group_lag.py, lag_ages.py      how far groups are behind, in records and in seconds
    alerting.py                    what should wake somebody, looked for without Prometheus
    telemetry.py, telemetry_samples.py   samples in `__telemetry`
    audit_copies.py, audit_events.py     who asked for changes, in `__audit`
    audit_journal.py               who logged in and who was refused, in `audit.file`

Invariants
    Nothing that serves clients depends on this room.
    An answer about the cluster says how old the knowledge behind it is.
"""
