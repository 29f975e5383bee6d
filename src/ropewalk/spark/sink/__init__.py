"""Rows of Spark → records of topics, at least once, or exactly once with a marker in the same transaction.

options.py      what a writer may ask for
marker.py       what makes a replay harmless: a core that decides whether a task writes its rows or has written them
incoming.py     which columns a frame may bring; rows gathered, and by topic
placing.py      which partition each row goes to
digest.py       what rows come to, whatever their order
writing.py      one task: place, encode, send; transaction.py  the same inside a transaction, with its marker
recovery.py     where to go on after a checkpoint was lost, from the markers
writer.py       what Spark calls to write
"""
