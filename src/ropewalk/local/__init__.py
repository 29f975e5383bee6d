"""A cluster on one machine: several nodes, and etcd where it is wanted, as processes under one supervisor."""
