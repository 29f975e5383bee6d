"""Kafka's own Java classes read what we write and write the same bytes, in every version of every API.

Needs Java and the kafka-clients jar, which Maven fetches
(`mvn dependency:get -Dartifact=org.apache.kafka:kafka-clients:4.4.0`); skipped where they are not.
"""

import os
import random
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from ropewalk.wire.schema import Array, Blob, Field, Kind, Structure, Text, fields_of
from ropewalk.wire.types import Fixed, Message, RecordSet
from tests.wire.invented import DIRECTIONS, is_ours

_REPOSITORY: Final = Path(os.environ.get("MAVEN_REPOSITORY", "~/.m2/repository")).expanduser()
_JAR: Final = _REPOSITORY / "org/apache/kafka/kafka-clients/4.4.0/kafka-clients-4.4.0.jar"


@pytest.mark.skipif(shutil.which("java") is None, reason="optional: there is no java")
@pytest.mark.skipif(
    not _JAR.exists(), reason="optional: the kafka-clients jar is not in the local Maven repository"
)
def test_java_reads_what_we_write_and_writes_the_same() -> None:
    chance = random.Random(4)
    lines = [
        f"{direction.api.key} {direction.name} {version} "
        f"{direction.encode(version, _invent(direction.message, version, chance)).hex()}"
        for direction in DIRECTIONS
        for version in direction.api.versions
        for _ in range(4)
    ]
    libraries = [str(_JAR), *map(str, _REPOSITORY.glob("org/slf4j/slf4j-api/*/slf4j-api-*.jar"))]
    command = ["java", "-cp", os.pathsep.join(libraries), str(Path(__file__).with_name("Reencode.java"))]
    java = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=False)
    assert java.returncode == 0, java.stderr
    written = java.stdout.split("\n")
    assert len(written) == len(lines) + 1
    for sent, received in zip(lines, written, strict=False):
        assert received == sent.rpartition(" ")[2], sent


def _invent(message: type[Message], version: int, chance: random.Random) -> Message:
    """As hypothesis would, but for a fixed number of messages that all go to one Java process."""
    fields = [field for field in fields_of(message) if field.exists(version) and not is_ours(field)]
    return message(**{field.name: _field(field, version, chance) for field in fields})


def _field(field: Field, version: int, chance: random.Random) -> object:
    if field.nullable(version) and chance.random() < 0.3:
        return None
    if field.tag is not None and chance.random() < 0.3:
        return field.default
    return _value(field.kind, version, chance)


def _value(kind: Kind, version: int, chance: random.Random) -> object:
    match kind:
        case Fixed("?"):
            return chance.random() < 0.5
        case Fixed("d"):
            return chance.random()
        case Fixed("16s"):
            return chance.randbytes(16)
        case Fixed("H"):
            return chance.choice([0, 1, 9092, 65_535])
        case Fixed():
            return chance.choice([0, 1, -1, -128, 127])
        case Text():
            return chance.choice(["", "topic", "é" * 70])
        case Blob() | RecordSet():
            return chance.randbytes(chance.choice([0, 5, 200]))
        case Structure(message):
            return _invent(message, version, chance)
        case Array(element):
            return tuple(_value(element, version, chance) for _ in range(chance.choice([0, 1, 3])))
