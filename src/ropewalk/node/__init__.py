"""One node: its configuration, its wiring, its life from start to stop.

Everything is put together by hand in `build.py`; no other room knows how the parts are found.
"""
