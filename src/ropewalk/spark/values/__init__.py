"""What is in a record's value: bytes that are JSON, Avro or Protobuf → Arrow columns, and of each row that is none of it, why.

    decoding.py   the settings, what tasks are sent of them, and the reader that a task makes of that
    shapes.py     Python objects as parsers make them → Arrow, row by row where one does not fit
    framing.py    the prefix that serializers with a registry put before a value
    registry.py   schemas by Confluent's HTTP API; schemas.py  a schema's text with those it refers to
    json_*, avro_*, protobuf_*   a schema → columns, and values → rows; json_keywords.py  what of JSON Schema is checked

Nothing here knows Spark: readers run inside tasks, on Arrow arrays.
"""
