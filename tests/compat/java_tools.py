"""Kafka's own client and tools, and AWS's SDK for SQS, where Java and Maven are: fetched once into the project's cache, and run.

Without Java the other clients speak for it, so its absence does not turn `./test` red; it is listed there.
"""

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

_SOURCES: Final = Path(__file__).parent / "java"
_CACHE: Final = Path(__file__).parents[2] / ".cache" / "java"
_FLAGS: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m")
_PROGRAMS: Final = ("java", "javac", "mvn")
PATIENCE_S: Final = 60


def java_is_here() -> bool:
    return all(map(shutil.which, _PROGRAMS))


def tools_class_path() -> str:
    """The class path of the console tools."""
    return _fetch("kafka-tools", "4.3.1")


def config_tool_class_path() -> str:
    """The class path of `kafka-configs`, which lies among the broker's own classes."""
    return _fetch("kafka_2.13", "4.3.1")


def class_path_of(program: str, artifact: str = "kafka-clients", version: str = "4.4.0") -> str:
    """The class path of one of our small programs, on the newest client unless it needs more than that; it is compiled when
    its source is newer."""
    return _compiled(program, _fetch(artifact, version))


def sqs_class_path_of(program: str) -> str:
    """The class path of one of our small programs on AWS's SDK for SQS."""
    return _compiled(program, _fetch("sqs", "2.54.14", pom="sqs-pom.xml", whose="AWS's SDK"))


def _compiled(program: str, jars: str) -> str:
    classes = _CACHE / "classes"
    source, compiled = _SOURCES / f"{program}.java", classes / f"{program}.class"
    if not compiled.exists() or compiled.stat().st_mtime < source.stat().st_mtime:
        subprocess.run(["javac", "-cp", jars, "-d", classes, source], check=True)
    return f"{classes}:{jars}"


def java_command(class_path: str, *arguments: str) -> list[str]:
    return ["java", *_FLAGS, "-cp", class_path, *arguments]


def run_java(class_path: str, *arguments: str, stdin: bytes = b"") -> str:
    """Runs to the end and answers with what was printed."""
    command = java_command(class_path, *arguments)
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def _fetch(artifact: str, version: str, *, pom: str = "pom.xml", whose: str = "Kafka's own client") -> str:
    for program in _PROGRAMS:
        if shutil.which(program) is None:
            pytest.skip(f"optional: {program} is missing, so {whose} was not tried")
    jars = _CACHE / f"{artifact}-{version}"
    if not jars.exists():
        what = [
            f"-Dartifact={artifact}",
            f"-Dversion={version}",
            "-DincludeScope=runtime",
            f"-DoutputDirectory={jars}",
        ]
        command = ["mvn", "-q", "-B", "-f", str(_SOURCES / pom), "dependency:copy-dependencies", *what]
        if subprocess.run(command, capture_output=True).returncode:
            shutil.rmtree(jars, ignore_errors=True)
            pytest.skip(f"optional: Maven could not fetch {whose}, so it was not tried")
    return f"{jars}/*"
