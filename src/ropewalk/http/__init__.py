"""The HTTP door: metrics and health, over HTTP/1.1 on the Network port.

`httptools` parses; what is here keeps order, limits and time, and routes to one handler per kind of page. It
translates and holds no rule (ADR 0009 says why it is no framework).
"""
