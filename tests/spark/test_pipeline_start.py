"""What is refused before Spark is started, and how the command line says it. No Java is started here."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ropewalk.spark.pipelines.definition import Job
from ropewalk.spark.pipelines.hosts import Host, refuse_unfit
from ropewalk.spark.pipelines.java import check_java, major_version
from ropewalk.spark.pipelines.session import check_place, settings_of, with_attempts
from ropewalk.spark.refusals import WrongUse
from tests.spark.conftest import Node
from tests.spark.test_pipeline_definition import NoTarget


def a_job(*, master: str | None = None, remote: str | None = None, conf: dict[str, str] | None = None) -> Job:
    return Job(
        name="j",
        kind="archive",
        bootstrap="127.0.0.1:9092",
        source={"subscribe": "t"},
        checkpoint="/c",
        once=True,
        interval="5 seconds",
        master=None if remote else master or "local[*]",
        remote=remote,
        conf=conf or {},
        settings=NoTarget(),
    )


@pytest.fixture
def java(tmp_path: Path) -> "FakeJava":
    return FakeJava(tmp_path)


class FakeJava:
    """A program called java that says which it is and can do nothing else."""

    def __init__(self, directory: Path) -> None:
        self.environment = {"PATH": str(directory)}
        self._path = directory / "java"

    def says(self, version: str, code: int = 0) -> None:
        self._path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\nexit {code}\n")
        self._path.chmod(0o755)


@pytest.mark.parametrize(
    ("told", "major"),
    [
        ('openjdk version "17.0.13" 2024-10-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_392"', 8),
        ("command not found", None),
    ],
)
def test_the_version_of_java_is_read(told: str, major: int | None) -> None:
    assert major_version(told) == major


def test_java_is_looked_at_before_spark_is_started(java: FakeJava, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="there is none: install Java 17 or newer"):
        check_java(java.environment)
    java.says("11.0.2")
    with pytest.raises(WrongUse, match="is Java 11, and Spark needs 17: install"):
        check_place(a_job(), java.environment)
    java.says("17.0.13", code=1)
    with pytest.raises(WrongUse, match="does not say which Java it is"):
        check_java(java.environment)
    java.says("17.0.13")
    check_place(a_job(), java.environment)
    with pytest.raises(WrongUse, match=r"cannot be run .* set JAVA_HOME"):
        check_java({**java.environment, "JAVA_HOME": str(tmp_path / "nowhere")})


@pytest.fixture
def nobody() -> int:
    """A port at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.mark.parametrize(
    ("job", "saying"),
    [
        (a_job(master="lokal[2]"), "'lokal[2]' is no master; did you mean local[2]?"),
        (a_job(master="spark://here"), "write spark://HOST:PORT"),
        (a_job(remote="sc://h", conf={"spark.ui.enabled": "true"}), "leave --ui out"),
        (a_job(remote="http://x"), "is no Connect server: write --remote sc://HOST:15002"),
        (a_job(conf={"spark.speculation": "true"}), "--conf spark.speculation=false"),
    ],
)
def test_a_place_that_cannot_be_is_refused(job: Job, saying: str) -> None:
    with pytest.raises(WrongUse) as caught:
        check_place(job, {})
    assert saying in str(caught.value)


def test_a_place_where_nobody_answers_is_refused_at_once(nobody: int, java: FakeJava) -> None:
    with pytest.raises(WrongUse, match="start the master, or leave --master out"):
        check_place(a_job(master=f"spark://127.0.0.1:{nobody}"), {})
    with pytest.raises(WrongUse, match="start the Connect server, or leave --remote out"):
        check_place(a_job(remote=f"sc://127.0.0.1:{nobody}/;token=x"), {})
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        check_place(a_job(remote=f"sc://127.0.0.1:{port}"), {})  # and no Java is wanted here
        java.says("21.0.1")
        check_place(a_job(master=f"spark://127.0.0.1:{nobody},127.0.0.1:{port}"), java.environment)


def test_a_session_on_this_machine_stays_on_it_and_what_is_said_wins() -> None:
    assert settings_of(a_job())["spark.driver.host"] == "127.0.0.1"
    assert settings_of(a_job(conf={"spark.ui.enabled": "true"}))["spark.ui.enabled"] == "true"
    assert "spark.driver.host" not in settings_of(a_job(master="spark://h:1"))
    assert settings_of(a_job(remote="sc://h", conf={"a": "b"})) == {"a": "b"}


@pytest.mark.parametrize(
    ("master", "count"),
    [("local", "2"), ("local[3]", "6"), ("local[4,2]", "8"), ("local-cluster[2,3,1024]", "12")],
)
def test_one_machine_has_as_many_shuffle_partitions_as_it_can_use(master: str, count: str) -> None:
    name = "spark.sql.shuffle.partitions"
    assert settings_of(a_job(master=master))[name] == count
    assert settings_of(a_job(master=master, conf={name: "7"}))[name] == "7"
    assert int(settings_of(a_job())[name]) == 2 * len(os.sched_getaffinity(0))
    assert name not in settings_of(a_job(master="spark://h:1"))


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local", "local[1,4]"),
        ("local[*]", "local[*,4]"),
        ("local[2]", "local[2,4]"),
        ("local[2,1]", "local[2,1]"),
        ("local-cluster[2,3,1024]", "local-cluster[2,3,1024]"),
        ("spark://h:7077", "spark://h:7077"),
    ],
)
def test_a_task_is_tried_again_on_this_machine_as_it_is_on_a_cluster(master: str, expected: str) -> None:
    """Spark itself tries a task of `local` once, and on a busy machine a worker may take too long to start."""
    assert with_attempts(master) == expected


def test_hosts_that_lack_something_are_named() -> None:
    fit = Host("one", "/py", "1.0")
    refuse_unfit([fit], "1.0")
    with pytest.raises(WrongUse) as caught:
        refuse_unfit(
            [
                fit,
                Host("two", "/py", None),
                Host("three", "/py", "0.9"),
                Host("four", "/py", "1.0", ("numba",)),
            ],
            "1.0",
        )
    assert str(caught.value).startswith(
        "not every Spark host can run this: four (/py) lacks numba; three (/py) has ropewalk 0.9, this is 1.0;"
        " two (/py) has no ropewalk. Install ropewalk[spark]==1.0 there"
    )


def ropewalk(*arguments: str, directory: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    """The command as a user calls it, where there is no Java unless told otherwise."""
    return subprocess.run(
        [sys.executable, "-c", "from ropewalk.cli.main import main; main()", "pipeline", *arguments],
        cwd=directory,
        env={
            **{name: value for name, value in os.environ.items() if name != "JAVA_HOME"},
            "PATH": str(directory),
            "XDG_STATE_HOME": str(directory / "state"),
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=60,
    )


TINY = """
from msgspec import Struct
class Tiny:
    summary = "Does little."
    class Settings(Struct, frozen=True):
        to: str
        '''Where to.'''
        often: int = 3
    start = finish = staticmethod(lambda work: None)
"""
WITH_TINY = "import sys, tiny; import ropewalk.spark.pipelines.catalogue as c; c.PIPELINES['tiny'] = 'tiny:Tiny'; from ropewalk.spark.__main__ import main; sys.exit(main(sys.argv[1:]))"


def with_tiny(*arguments: str, directory: Path) -> "subprocess.CompletedProcess[str]":
    """The process that pipelines run in, with one more kind of them."""
    (directory / "tiny.py").write_text(TINY)
    return subprocess.run(
        [sys.executable, "-c", WITH_TINY, *arguments],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(directory), "PATH": str(directory), "JAVA_HOME": ""},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_without_java_one_line_says_what_to_install(tmp_path: Path) -> None:
    state = ["--state", str(tmp_path / "s")]
    done = with_tiny("run", "tiny", "--topic", "t", "--to", "x", "--once", *state, directory=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("ropewalk: Spark needs Java, and there is none: install Java 17 or newer")
    assert done.stderr.count("\n") == 1
    assert not {"s", "x"} & set(os.listdir(tmp_path))


def test_a_topic_that_is_not_there_is_one_line_and_so_are_brokers(
    tmp_path: Path, java: FakeJava, node: Node, nobody: int
) -> None:
    java.says("17.0.13")
    words = ["run", "tiny", "--topic", "no-such", "--to", "x", "--state", "s", "-b"]
    done = with_tiny(*words, node.bootstrap, directory=tmp_path)
    assert done.stderr == "ropewalk: there is no no-such; create it first, or subscribe by pattern\n"
    done = with_tiny(*words, f"127.0.0.1:{nobody}", directory=tmp_path)
    assert done.stderr.startswith(f"ropewalk: no broker answers at 127.0.0.1:{nobody}")
    assert done.stderr.count("\n") == 1
    assert not {"s", "x"} & set(os.listdir(tmp_path))


def test_a_wrong_master_is_one_line(tmp_path: Path) -> None:
    arguments = ["run", "tiny", "--topic", "t", "--to", "x", "--master", "locla[2]", "--json"]
    done = with_tiny(*arguments, directory=tmp_path)
    assert done.returncode == 2
    told = json.loads(done.stderr)
    assert told["error"] == "WrongUse"
    assert told["message"].endswith("did you mean local[2]?")


def test_kinds_and_jobs_are_listed_and_described(tmp_path: Path) -> None:
    (tmp_path / "pipelines.toml").write_text(
        '[pipeline.mine]\nkind = "tiny"\ntopics = ["a", "b"]\n[pipeline.mine.settings]\noften = 5\n'
    )
    listed = with_tiny("ls", directory=tmp_path).stdout.splitlines()
    assert listed[0].split() == ["NAME", "KIND", "WHAT", "IT", "DOES"]
    assert [line.split(maxsplit=2) for line in listed if line.startswith(("tiny", "mine"))] == [
        ["tiny", "kind", "Does little."],
        ["mine", "tiny", "topics a, b"],
    ]
    described = with_tiny("describe", "mine", directory=tmp_path).stdout
    assert "topics  a,b" in described
    assert [line.split(maxsplit=2) for line in described.splitlines()[-2:]] == [
        ["to", "required", "Where to."],
        ["often", "5"],
    ]
    (setting, _) = json.loads(with_tiny("describe", "tiny", "--json", directory=tmp_path).stdout)["settings"]
    assert setting == {"name": "to", "default": None, "required": True, "meaning": "Where to."}
    refused = with_tiny("describe", "min", directory=tmp_path)
    assert refused.stderr == "ropewalk: there is no kind and no job 'min'; did you mean mine?\n"


def test_the_command_line_hands_everything_on(tmp_path: Path) -> None:
    done = ropewalk("run", "no-such", "--topic", "-t", "--to", "x", directory=tmp_path)
    assert done.returncode == 2
    assert "there is no kind of pipeline 'no-such'" in done.stderr
    assert ropewalk("status", "-o", "json", directory=tmp_path).stdout == "[]\n"
    gone = ropewalk("status", "gone", directory=tmp_path)
    assert (gone.returncode, gone.stderr) == (
        2,
        "ropewalk: no job 'gone' has run here; --state names another directory, --bootstrap a cluster that may have heard of it\n",
    )
    missing = ropewalk("ls", "--file", "none.toml", directory=tmp_path)
    assert missing.stderr == "ropewalk: there is no file none.toml\n"


def test_without_the_extra_the_command_that_adds_it_is_named(tmp_path: Path) -> None:
    hide = "import sys; sys.modules['pyspark'] = None; from ropewalk.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", hide, "pipeline", "ls"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert "pip install 'ropewalk[spark]'" in done.stderr
