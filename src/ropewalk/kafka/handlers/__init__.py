"""One file per API, named as Kafka names it. Each `handle` is given just what it may touch."""
