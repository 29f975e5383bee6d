"""Queues over the SQS API: messages that are sent, received, extended and deleted one by one.

`queue` is what applications are offered (`ropewalk.aio.Queue`; `blocking/queue.py` has the same without a loop) and `administration` what
the command line asks. Both stand on `calling`, which signs requests, sends them to an endpoint that answers and tries again what may be
repeated; `endpoints` finds those. It speaks to any server with the SQS API; the actions of Ropewalk's own say so.
"""
