"""Arrow columns → record batches as brokers take them, without a Python object per record; the twin of `decoding`.

rows.py       the columns of rows to be written, as numbers: where each key, value and header lies
kernels.py    compiled loops over them; plain.py  the same without numba; choice.py  which of them
encoder.py    rows and their partitions in, finished batches out
"""
