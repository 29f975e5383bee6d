"""HTTP/1.1 on the Network port, for every door that speaks it, and for the node as a client of others.

`httptools` parses, but for usual requests that come whole (`whole_request.py`); what is here keeps order, limits and time (ADR 0009 says why it is no framework). What a request means is
the business of the door that listens: it gives each connection a handler.
"""
