"""What the command line and the console both show of a cluster: collected from several answers, put together, and worked out.

Everything here is a client of the cluster and speaks Kafka's protocol alone, so most of it works for any broker that does. How it is
shown, on a terminal or a page, is the business of the rooms above.
"""
