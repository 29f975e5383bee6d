"""What every room may rely on: identifiers, errors, limits, metrics and the ports to the outside world.

Nothing here imports another room, opens a file, reads a clock or knows a protocol.
"""
