"""What Spark does with the source and the sink, in a hundred lines and without Java: many more deaths in the same time.

    spark_loop.py BOOTSTRAP CHECKPOINT SOURCE TARGET OFFSETS_MAX PARTITIONS_MIN TASKS INTERVAL|once

A driver that writes down where a batch ends before it begins it, lets tasks read and write it in processes of their own, tries those again
that die, and writes down that it is done. Each task reads everything and takes the rows whose keys are its own, as after a shuffle.
"""

import json
import multiprocessing
import os
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyspark.sql.streaming.datasource import ReadAllAvailable

from ropewalk.spark.columns import Column
from ropewalk.spark.decoding.decoder import Decoder
from ropewalk.spark.decoding.records_found import Wanted
from ropewalk.spark.encoding.encoder import encode
from ropewalk.spark.encoding.rows import rows_of
from ropewalk.spark.options import parse_source
from ropewalk.spark.ranges import Json
from ropewalk.spark.readers import StreamReader
from ropewalk.spark.sink.digest import RowsDigest
from ropewalk.spark.sink.options import parse_sink
from ropewalk.spark.sink.transaction import write_once

NAME: Final = "loop"
ATTEMPTS_MAX: Final = 8
IDLE_S: Final = 0.2
_READ: Final = (Column.KEY, Column.VALUE, Column.PARTITION, Column.OFFSET)


class Loop:
    def __init__(
        self,
        bootstrap: str,
        checkpoint: str,
        source: str,
        target: str,
        offsets_max: str,
        partitions_min: str,
        tasks: str,
        interval: str,
    ) -> None:
        options = {"bootstrap": bootstrap, "subscribe": source, "startingOffsets": "earliest"}
        options |= {"maxOffsetsPerTrigger": offsets_max, "minPartitions": partitions_min}
        self._reader = StreamReader(parse_source(options, streaming=True), _READ)
        writing = {
            "bootstrap": bootstrap,
            "topic": target,
            "exactlyOnce": "true",
            "name": NAME,
            "tasks": tasks,
        }
        self._writing = parse_sink(writing, streaming=True)
        self._task_count = int(tasks)
        self._checkpoint = Path(checkpoint)
        self._once = interval == "once"
        for name in ("offsets", "commits"):
            (self._checkpoint / name).mkdir(parents=True, exist_ok=True)
        if not (self._checkpoint / "metadata").exists():
            self._write("metadata", json.dumps({"id": str(uuid4())}))
        self._query = json.loads((self._checkpoint / "metadata").read_text())["id"]

    def warm_up(self) -> None:
        """Loops are compiled, or loaded, once: tasks are copies of this process."""
        columns = {each: pa.array([b"0"], pa.binary()) for each in (Column.KEY, Column.VALUE)}
        settings = self._writing.settings
        for each in encode(
            rows_of(columns, 0),
            np.zeros(1, np.int64),
            codec=settings.codec,
            batch_bytes=settings.batch_size,
            record_bytes_max=settings.max_request_size,
        ):
            Decoder(_READ, topic=NAME, partition=0).decode(memoryview(each.encoded), Wanted(0, 1), [])
        RowsDigest().add(columns)

    def run(self) -> None:
        limit = ReadAllAvailable() if self._once else self._reader.getDefaultReadLimit()
        batch = sum(1 for _ in (self._checkpoint / "commits").iterdir())
        start = self._end(batch - 1) if batch else self._reader.initialOffset()
        while True:
            if not (self._checkpoint / "offsets" / str(batch)).exists():
                end = self._reader.latestOffset(start, limit)
                if end == start:
                    if self._once:
                        return
                    time.sleep(IDLE_S)
                    continue
                self._write(f"offsets/{batch}", f"v1\n{{}}\n{json.dumps(end)}")
            end = self._end(batch)
            self._carry_out(batch, start, end)
            self._write(f"commits/{batch}", "v1")
            start, batch = end, batch + 1

    def _carry_out(self, batch: int, start: Json, end: Json) -> None:
        unfinished = dict.fromkeys(range(self._task_count), 0)
        while unfinished:
            fork = multiprocessing.get_context("fork")
            running = {
                task: fork.Process(target=self._write_task, args=(task, batch, start, end))
                for task in unfinished
            }
            for process in running.values():
                process.start()
            for task, process in running.items():
                process.join()
                unfinished[task] += 1
                if process.exitcode == 0:
                    del unfinished[task]
                elif unfinished[task] == ATTEMPTS_MAX:
                    sys.exit(f"task {task} of batch {batch} has failed {ATTEMPTS_MAX} times")

    def _write_task(self, task: int, batch: int, start: Json, end: Json) -> None:
        os.setpgid(0, 0)  # whoever ends the driver does not end this
        columns = (Column.KEY, Column.VALUE)
        write_once(
            self._writing, columns, self._rows(task, start, end), task=task, query=self._query, batch=batch
        )

    def _rows(self, task: int, start: Json, end: Json) -> Iterator[pa.RecordBatch]:
        for each in self._reader.partitions(start, end):
            for read in self._reader.read(each):
                rows = [
                    (row["key"], f"{row['partition']} {row['offset']} {row['value'].decode()}".encode())
                    for row in read.to_pylist()
                    if zlib.crc32(row["key"]) % self._task_count == task
                ]
                if rows:
                    keys, values = zip(*rows, strict=True)
                    yield pa.record_batch(
                        [pa.array(keys, pa.binary()), pa.array(values, pa.binary())], ["key", "value"]
                    )

    def _end(self, batch: int) -> Json:
        end: Json = json.loads((self._checkpoint / "offsets" / str(batch)).read_text().splitlines()[2])
        return end

    def _write(self, name: str, text: str) -> None:
        """As Spark does: there at once, and whole."""
        beside = self._checkpoint / "writing"
        beside.write_text(text)
        beside.rename(self._checkpoint / name)


if __name__ == "__main__":
    loop = Loop(*sys.argv[1:])
    loop.warm_up()
    loop.run()
