"""Connections to brokers, and which of them to ask.

address, settings   where brokers are, and what a client can be told
frame_buffer, versions, connection
                    one socket with requests in flight, and the version of an API that both ends speak
peer_connection     the same to another node's internal listener
cluster, coordinators
                    who leads what, and who looks after which group or transactional id
nearby              which copy of a partition to read from, for a reader that says where it is
session             a cluster, and the rules for trying again
backoff, single_flight
                    how long to wait, and how to ask once for everybody
"""
