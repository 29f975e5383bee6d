"""Record batches as brokers send them → Arrow columns, without a Python object per record.

bodies.py         fetched bytes → the bodies of their batches in one buffer: checked, opened, without what was aborted
records_found.py  where each record's parts lie, as columns of numbers
kernels.py        finds them by compiled loops; lockstep.py  the same with numpy alone; choice.py  which of them, and when
decoder.py        all of it together: bytes in, an Arrow record batch out
"""
