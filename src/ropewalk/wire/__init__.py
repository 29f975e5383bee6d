"""Kafka's bytes and typed messages, and nothing that either of them means.

A message is a class in `messages/<api>.py`; the class is the schema. `compile` turns it, once per version and
at first use, into straight-line code; `Api` is the face the other rooms see:

    request = produce.API.decode_request(9, buffer, position, end)
    chunks = produce.API.encode_response(9, ProduceResponse(...))

Promises
    Bytes from outside give a message or a `ProtocolError`, never another exception.
    Decoding never takes more memory than a small multiple of the bytes it was given: thirty times for frames
    made of nothing but empty names, hardly more than once for record sets.
    A request has at most `REQUEST_ELEMENTS_MAX` elements, so decoding one takes a fraction of a second at the worst.
    Record sets are never copied: decoded they are `memoryview`s of the frame, encoded they are chunks as given.
"""
