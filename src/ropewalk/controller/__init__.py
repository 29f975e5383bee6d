"""Decisions about the cluster: topics, partitions and their placement, settings, brokers, producer ids.

Every `decide_*` reads an image and answers with the metadata records that carry the command out, or refuses with
an operating error. It never writes, awaits, looks at a clock or rolls dice of its own; the caller commits what it
answers and applies it. Validating a request without carrying it out is calling `decide_*` and dropping the records.
"""
