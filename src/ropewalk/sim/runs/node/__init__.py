"""One whole node under faults: `ropewalk-sim` runs it when nothing else is asked for.

boot, keeper        the real node on simulated ports, and whoever starts it again
faults, full_disk   trouble, drawn from the seed
scenario            one run of it all
"""
