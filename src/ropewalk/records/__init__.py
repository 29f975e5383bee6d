"""Record batches, Kafka's format v2: read, validate, build, compress.

A batch is the unit of everything below this room: it is sent, checked, written, read and replicated as one
run of bytes. `batch` looks at its header and stamps it in place, `validate` decides whether a producer's
batch may enter a log, `record` opens and builds batches, `control` and `marker` those
that brokers write for themselves, `compression` holds the codecs.

Invariants
    A batch from a client is never trusted: whatever its bytes are, the answer is a header or an operating
    error from `base.errors`, and never memory beyond a stated bound.
    What lies under the CRC is changed only by code that computes the CRC again.
"""
