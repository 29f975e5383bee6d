"""The metadata log at home in etcd: for clusters that must survive the loss of any node.

etcd (3.4 or newer) is spoken to through its HTTP/JSON gateway, over the Network port, so that the same code runs
against a modelled etcd in the simulator. `client.py` is the members and how to fail over,
`messages.py` what is said, `keys.py` what is kept where, `mirror.py` what this process has heard, `log.py` the port.

Invariants
    Every write compares the controller key's revision: what a replaced controller sends changes nothing, however late.
    An append also compares where the log ends, and creates one key. It is sent once; whoever hears nothing reads.
    A lease says who was heard of lately, and decides nothing.
"""
