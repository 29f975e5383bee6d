"""Where an object store is and by which keys: said in a file, in the environment or in a profile, and shown to nobody."""

import pickle
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from ropewalk.spark.pipelines.archive import ArchiveSettings
from ropewalk.spark.pipelines.definition import Job, Table, define, parse_file
from ropewalk.spark.pipelines.listing import print_description
from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.storage import Storage, as_written, resolve
from ropewalk.spark.store_words import said_by_store

SECRET = "hush-hush"
KEYS = {"AWS_ACCESS_KEY_ID": "env", "AWS_SECRET_ACCESS_KEY": SECRET}


def keys(storage: Storage) -> tuple[str | None, str | None, str | None]:
    return storage.access_key_id, storage.secret_access_key, storage.session_token


def test_the_environment_says_what_the_file_does_not(tmp_path: Path) -> None:
    nowhere = {"HOME": str(tmp_path)}
    assert resolve({}, nowhere) == Storage(virtual_hosts=True)
    found = resolve({}, {**nowhere, **KEYS, "AWS_ENDPOINT_URL": "http://a:1/", "AWS_SESSION_TOKEN": "t"})
    assert (found.endpoint, found.region, found.virtual_hosts) == ("http://a:1", "us-east-1", False)
    assert keys(found) == ("env", SECRET, "t")
    assert resolve(
        {}, {**nowhere, "AWS_ENDPOINT_URL": "http://a", "AWS_ENDPOINT_URL_S3": "http://b"}
    ).endpoint == ("http://b")
    said = {"endpoint": "https://c", "region": "eu", "access_key_id": "file", "secret_access_key": "other"}
    found = resolve(said, {**nowhere, **KEYS, "AWS_ENDPOINT_URL": "http://a", "AWS_SESSION_TOKEN": "t"})
    assert (found.endpoint, found.region) == ("https://c", "eu")
    assert keys(found) == ("file", "other", None), "a token of other keys is not used with these"


def test_keys_may_be_in_a_file_of_their_own_or_in_a_profile(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    said = {"access_key_id": "file", "secret_access_key_file": str(tmp_path / "secret")}
    assert keys(resolve(said, {"HOME": str(tmp_path)})) == ("file", SECRET, None)
    aws = tmp_path / ".aws"
    aws.mkdir()
    (aws / "credentials").write_text(
        f"[default]\naws_access_key_id=d\naws_secret_access_key={SECRET}\n[night]\naws_access_key_id=n\naws_secret_access_key=m\n"
    )
    (aws / "config").write_text(
        "[default]\nregion=eu-1\n[profile night]\nregion=eu-2\nendpoint_url=http://n\n"
    )
    found = resolve({}, {"HOME": str(tmp_path)})
    assert (*keys(found), found.region, found.endpoint) == ("d", SECRET, None, "eu-1", None)
    found = resolve({}, {"HOME": str(tmp_path), "AWS_PROFILE": "night"})
    assert (*keys(found), found.region, found.endpoint) == ("n", "m", None, "eu-2", "http://n")


@pytest.mark.parametrize(
    ("said", "environment", "words"),
    [
        pytest.param({"endpont": "x"}, {}, "does not know 'endpont'; did you mean endpoint", id="name"),
        pytest.param({"endpoint": "host:9000"}, {}, "'host:9000' is no URL", id="endpoint"),
        pytest.param({"access_key_id": "a"}, {}, "one of them is missing", id="half a key"),
        pytest.param({}, {"AWS_ACCESS_KEY_ID": "a"}, "one of them is not set", id="half a key around"),
        pytest.param({"patience_seconds": 0}, {}, "must be at least 1", id="patience"),
        pytest.param({"region": 3}, {}, "Expected `str", id="type"),
        pytest.param(
            {"access_key_id": "a", "secret_access_key_file": "/nowhere/at/all"},
            {},
            "cannot be read",
            id="file",
        ),
    ],
)
def test_what_cannot_be_is_refused(
    said: dict[str, object], environment: dict[str, str], words: str, tmp_path: Path
) -> None:
    with pytest.raises(WrongUse, match=words):
        resolve(said, {"HOME": str(tmp_path), **environment})


def test_every_library_is_told_the_same() -> None:
    storage = Storage(
        endpoint="http://a:1", region="r", access_key_id="k", secret_access_key=SECRET, session_token="t"
    )
    told: list[Mapping[str, object]] = [
        storage.for_delta(),
        storage.for_arrow(),
        storage.for_iceberg(),
        storage.for_hadoop(),
    ]
    for each in told:
        assert {"http://a:1", "r", "k", SECRET, "t"} <= set(each.values())
    assert storage.for_delta()["aws_conditional_put"] == "etag"
    assert Storage().for_delta().keys().isdisjoint({"aws_access_key_id", "aws_endpoint", "aws_region"})


def test_secrets_are_in_no_text(capsys: pytest.CaptureFixture[str]) -> None:
    storage = Storage(access_key_id="k", secret_access_key=SECRET, session_token=f"{SECRET}-token")
    assert SECRET not in repr(storage)
    assert "secret_access_key" in repr(storage)
    assert pickle.loads(pickle.dumps(storage)) == storage
    text = f"""
[pipeline.far]
kind = "archive"
topics = ["t"]
[pipeline.far.settings]
to = "s3://lake/far"
[pipeline.far.storage]
access_key_id = "k"
secret_access_key = "{SECRET}"
"""
    jobs = parse_file(text, "the file")
    for as_json in (False, True):
        print_description("far", jobs, as_json=as_json)
    shown = capsys.readouterr().out
    assert SECRET not in shown
    assert "secret_access_key" in shown


def job(to: str, **more: str) -> Job:
    given = Table(topics=["t"], settings={"to": to}, checkpoint=more.get("checkpoint"))
    return define("archive", {}, given, settings_of=lambda _: ArchiveSettings, state=more.get("state"))


def test_progress_is_kept_where_spark_can_write() -> None:
    assert job("/lake", state="/state").checkpoint == "/lake/_ropewalk/checkpoints/archive"
    assert job("s3://lake/t", state="/state").checkpoint == "/state/checkpoints/archive"
    assert job("s3a://lake/t", state="/state").checkpoint == "/state/checkpoints/archive"
    assert job("s3://lake/t", state="/state", checkpoint="s3a://b/c").checkpoint == "s3a://b/c"
    with pytest.raises(WrongUse, match="say where the job's progress is kept"):
        job("s3://lake/t")


def test_hadoops_name_for_s3_is_taken_for_what_it_is() -> None:
    assert as_written("s3a://lake/t") == "s3://lake/t"
    assert as_written("/lake/s3a://") == "/lake/s3a://"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "OSError: Generic S3 error\n  \x1b[31m↳\x1b[0m Error performing GET http://h:1/lake/_last_checkpoint in 3s, after 10 retries\n"
            "  \x1b[31m↳\x1b[0m error sending request\n tcp connect error\n Connection refused (os error 111)",
            r"does not answer \(http://h:1, Connection refused\): say where it is",
        ),
        (
            "OSError: When initiating multiple part upload for key 'x' in bucket 'none': AWS Error NO_SUCH_BUCKET during"
            " CreateMultipartUpload operation: The specified bucket does not exist (Request ID: abc)",
            "there is no bucket none in the object store",
        ),
        (
            "Generic S3 error: Error performing PUT http://h/lake/a in 1s - Server returned non-2xx status code: 403 Forbidden:"
            " <Error><Code>InvalidAccessKeyId</Code><Message>No such key.</Message></Error>",
            r"refuses the keys \(InvalidAccessKeyId: No such key\)",
        ),
        (
            "OSError: When completing multiple part upload for key 'x' in bucket 'lake': AWS Error SLOW_DOWN during"
            " CompleteMultipartUpload operation: Please reduce your request rate.",
            r"asks to slow down \(SLOW_DOWN\)",
        ),
        (
            "AWS Error NETWORK_CONNECTION during CreateMultipartUpload operation: curlCode: 7, Could not connect to server; Details:"
            " Failed to connect to 127.0.0.1:1",
            "does not answer",
        ),
    ],
)
def test_a_store_is_put_in_one_sentence(text: str, words: str) -> None:
    said = said_by_store(text)
    assert said is not None
    assert re.search(words, said)
    assert "\n" not in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("OSError: Generic MicrosoftAzure error\n\x1b[31m↳\x1b[0m Account must be specified\n", r"\(MicrosoftAzure\) says: Account must be specified\."),
        ("Kernel error -> Generic GCS error\n ↳ Error performing token request\n ↳ Error performing GET http://a/b in 9.1s\n", "GCS.*says: Error performing GET"),
        ("Generic GCS error", "says: nothing more"),
    ],
)  # fmt: skip
def test_what_other_stores_say_is_told_by_its_cause(text: str, said: str) -> None:
    found = said_by_store(text)
    assert found is not None
    assert re.search(said, found)
    assert "\n" not in found


def test_what_no_store_said_is_left_to_others() -> None:
    assert said_by_store("Generic LocalFileSystem error\n ↳ Permission denied") is None
    assert said_by_store("OSError: [Errno 28] No space left on device") is None
    assert said_by_store("Py4JError: Connection refused") is None
