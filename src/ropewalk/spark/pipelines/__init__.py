"""Jobs that run on Spark over topics: what a job is, how it is defined, started, watched and stopped.

pipeline.py     what a kind of pipeline has to offer, and what it is given
catalogue.py    the kinds there are
definition.py   a job from a file and the words of a command line; settings.py  those of a kind: read, and described
nearest.py      what somebody meant who wrote something else
"""
