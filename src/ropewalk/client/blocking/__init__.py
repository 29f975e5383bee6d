"""The client for programs without an event loop: every call returns when it is done.

Each object runs its asyncio twin on a loop in a thread of its own. Records go there through a mailbox and come back in lists,
so that no record costs a change of threads.
"""
