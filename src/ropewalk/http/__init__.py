"""The HTTP door: metrics and health, one handler per kind of page.

It translates and holds no rule; connections, limits and order are those of `http1`.
"""
