"""The settings of topics and brokers: which there are, what they may be, and which value applies.

Names, types, bounds and defaults are Kafka's, so that its tools show and set them unchanged; `flush` and
`storage` are ours. `setting.py` says what a setting is, `topic.py`, `topic_defaults.py` and `broker.py` are the
catalogues, `effective.py` finds the value that applies and where it came from.
"""
