"""`ropewalk user key`: access keys in a file, whose secrets nodes find out by themselves."""

import json
from pathlib import Path

import pytest

from ropewalk.base.errors import InvalidSetting
from ropewalk.sqs.credentials import read_keys
from tests.cli.conftest import Ropewalk


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, ...]:
    """What sqs.credentials and sqs.credential.key.file name, neither of which is there yet."""
    return (str(tmp_path / "keys.toml"), str(tmp_path / "credential.key"))


def add(ropewalk: Ropewalk, files: tuple[str, ...], user: str) -> dict[str, str]:
    options = ("--credentials", files[0], "--credential-key", files[1], "-o", "json")
    made = ropewalk("user", "key", "add", user, *options)
    assert made.exit_code == 0, made.stderr
    said: dict[str, str] = json.loads(made.stdout)
    return said


def test_keys_are_made_listed_and_removed_and_no_file_has_their_secrets(
    ropewalk: Ropewalk, files: tuple[str, ...]
) -> None:
    alice, bob = add(ropewalk, files, "alice"), add(ropewalk, files, 'bob "the builder"')
    known = read_keys(*files)
    assert [(key, each.user, each.secret, each.is_admin) for key, each in known.items()] == [
        (each["access_key"], each["user"], each["secret"], False) for each in (alice, bob)
    ]
    for path in files:
        assert Path(path).stat().st_mode & 0o777 == 0o600
        assert not any(each["secret"] in Path(path).read_text() for each in (alice, bob))
    listed = json.loads(ropewalk("user", "key", "ls", "--credentials", files[0], "-o", "json").stdout)
    assert [(each["access_key"], each["user"]) for each in listed] == [
        (each["access_key"], each["user"]) for each in (alice, bob)
    ]
    assert alice["secret"] not in ropewalk("user", "key", "ls", "--credentials", files[0]).stdout
    removing = ("user", "key", "rm", alice["access_key"], "--credentials", files[0])
    assert ropewalk(*removing).exit_code == 1, "nobody is there to ask"
    assert ropewalk(*removing, "--yes").exit_code == 0
    assert list(read_keys(*files)) == [bob["access_key"]]
    assert ropewalk(*removing, "--yes").exit_code == 1


def test_another_credential_key_follows_without_a_moment_in_which_keys_are_refused(
    ropewalk: Ropewalk, files: tuple[str, ...], tmp_path: Path
) -> None:
    former = add(ropewalk, files, "alice")
    path = Path(files[1])
    former_line = path.read_text()
    other = tmp_path / "other.key"
    add(ropewalk, (str(tmp_path / "others.toml"), str(other)), "nobody")
    path.write_text(other.read_text() + former_line)
    latter = add(ropewalk, files, "alice")
    secrets = {key: each.secret for key, each in read_keys(*files).items()}
    assert secrets == {each["access_key"]: each["secret"] for each in (former, latter)}
    path.write_text(other.read_text())
    with pytest.raises(InvalidSetting, match=f"{former['access_key']} is derived from"):
        read_keys(*files)


@pytest.mark.parametrize("user", ["*", "ANONYMOUS", ""])
def test_nobody_has_a_key_who_stands_for_others(
    ropewalk: Ropewalk, files: tuple[str, ...], user: str
) -> None:
    options = ("--credentials", files[0], "--credential-key", files[1])
    assert ropewalk("user", "key", "add", user, *options).exit_code == 1
    assert not any(Path(path).exists() for path in files)


def test_files_that_others_may_read_are_refused(ropewalk: Ropewalk, files: tuple[str, ...]) -> None:
    add(ropewalk, files, "alice")
    for path in files:
        Path(path).chmod(0o640)
        with pytest.raises(InvalidSetting, match="others than its owner may use"):
            read_keys(*files)
        options = ("--credentials", files[0], "--credential-key", files[1])
        refused = ropewalk("user", "key", "add", "bob", *options)
        assert (refused.exit_code, "chmod 600" in refused.stderr) == (1, True)
        Path(path).chmod(0o600)
