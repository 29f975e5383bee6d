"""Java that starts quickly: it compiles lightly, and finds Spark's classes in an archive that is made once.

Half of what a small job of Spark computes is loading some ten thousand classes. Java keeps them ready to use in an archive
(class data sharing): a session with one query then takes 6.5 s of processor instead of 10.7.

What a reader could get wrong
    An archive fits one Java and one class path, in whose name it is kept. Where it does not fit, as with another version of
    Spark, Java loads classes as ever.
    Tests take the archive that is there. `./test` makes it, beside the first of them: python -m tests.spark.quick_java
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import pyspark

LIGHT_JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xverify:none"
"""For Java that never lives long enough to be worth compiling well; that Spark's own classes are sound is known."""

_SPARK: Final = Path(pyspark.__file__).parent
_ARCHIVES: Final = Path(__file__).parents[2] / ".cache" / "spark-classes"
_MADE_WITHIN_S: Final = 900
_USED: Final = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.range(10).selectExpr("sum(id)").collect()
spark.range(4).mapInArrow(lambda batches: batches, "id long").collect()
stream = spark.readStream.format("rate").load().writeStream.format("noop").option("checkpointLocation", sys.argv[1])
stream.trigger(once=True).start().awaitTermination(60)
"""
"""What most jobs of the tests use of Spark."""


def quick_java() -> str:
    """Options for Java, as `JAVA_TOOL_OPTIONS` has them."""
    archive = _archive()
    if archive is None or not archive.exists():
        return LIGHT_JVM
    # Java's small launchers have another class path, and would say so.
    return f"{LIGHT_JVM} -XX:SharedArchiveFile={archive} -Xlog:cds*=off"


def main() -> None:
    archive = _archive()
    if archive is not None and not archive.exists():
        archive.parent.mkdir(parents=True, exist_ok=True)
        _make(archive)


def _archive() -> Path | None:
    """Where it is once it has been made; None where there cannot be any."""
    java = shutil.which("java")
    if java is None or " " in str(_ARCHIVES):
        return None
    program = Path(java).resolve()
    known = (program, program.stat().st_mtime_ns, _SPARK, pyspark.__version__, LIGHT_JVM)
    return _ARCHIVES / f"{hashlib.sha256(repr(known).encode()).hexdigest()[:16]}.jsa"


def _make(archive: Path) -> None:
    """Under another name at first, so that nobody takes half of it. Where Java cannot, nothing is made."""
    with tempfile.TemporaryDirectory(dir=_ARCHIVES) as scratch:
        making, program = Path(scratch) / "archive", Path(scratch) / "used.py"
        program.write_text(_USED)
        command = [str(_SPARK / "bin" / "spark-submit"), "--master", "local[1]", "--driver-memory", "1g"]
        for setting in ("ui.enabled=false", "driver.host=127.0.0.1", "driver.bindAddress=127.0.0.1"):
            command += ["--conf", f"spark.{setting}"]
        command += ["--driver-java-options", f"{LIGHT_JVM} -XX:ArchiveClassesAtExit={making}"]
        environment = {
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        }
        environment.pop("JAVA_TOOL_OPTIONS", None)
        command += [str(program), str(Path(scratch) / "checkpoint")]
        done = subprocess.run(command, env=environment, capture_output=True, timeout=_MADE_WITHIN_S)
        if done.returncode != 0 or not making.exists():
            sys.exit(f"Java made no archive of Spark's classes: {done.stderr.decode()[-2000:]}")
        making.rename(archive)


if __name__ == "__main__":
    main()
