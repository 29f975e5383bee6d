"""Profiles: clusters by name, and how to log in to each, in a file of the user's own; and the same from the environment.

What a reader could get wrong
    What the command line says counts, then the profile, then the environment. Where there is a profile, the environment only fills in
    a secret that the profile leaves out.
    A password is never on the command line, where every process of the machine can read it. Where nothing gives one, it is asked for.
    A file with a secret in it may be its owner's alone.
"""

import os
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ropewalk.base.errors import InvalidSetting
from ropewalk.base.limits import CLIENT_SECRET_BYTES_MAX
from ropewalk.client.connections.secret import GivenSecret, refuse_others
from ropewalk.client.connections.security import SECRETS, VARIABLES, ClientSecurity
from ropewalk.client.connections.settings import ClientSettings, settings_from

PROFILES_VARIABLE: Final = "ROPEWALK_PROFILES"
_SECRETS: Final = {name.replace("_", "."): name for name in SECRETS}


class Profile(Struct, frozen=True):
    bootstrap: str | None
    properties: Mapping[str, str | GivenSecret]
    """By Kafka's names."""


def profiles_path(environment: Mapping[str, str]) -> Path:
    if environment.get(PROFILES_VARIABLE):
        return Path(environment[PROFILES_VARIABLE]).expanduser()
    home = environment.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path("~/.config").expanduser()) / "ropewalk" / "profiles.toml"


def read_profile(name: str) -> Profile:
    """Raises `InvalidSetting`, which quotes no secret."""
    return _read(name, profiles_path(os.environ))


def _read(name: str, path: Path) -> Profile:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(CLIENT_SECRET_BYTES_MAX + 1)
    except OSError as error:
        raise InvalidSetting(f"profile {name!r}: {path} cannot be read: {error.strerror or error}") from None
    if len(content) > CLIENT_SECRET_BYTES_MAX:
        raise InvalidSetting(f"profiles: {path} is larger than {CLIENT_SECRET_BYTES_MAX} bytes")
    try:
        tables = tomllib.loads(content.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidSetting(f"profiles: {path} is no TOML: {error}") from None
    flat = {each: _flat(table) if isinstance(table, dict) else {} for each, table in tables.items()}
    if any(key in _SECRETS for table in flat.values() for key in table):
        refuse_others("profiles", str(path), mode)
    if name not in flat or not isinstance(tables[name], dict):
        known = ", ".join(sorted(flat)) or "none"
        raise InvalidSetting(f"there is no profile {name!r} in {path}; there are {known}")
    texts = {key: _written(name, key, value) for key, value in flat[name].items()}
    bootstrap = texts.pop("bootstrap", None)
    return Profile(
        bootstrap, {key: GivenSecret(text) if key in _SECRETS else text for key, text in texts.items()}
    )


def settings_of(
    given: Mapping[str, str],
    profile_name: str | None,
    environment: Mapping[str, str],
    *,
    may_ask: bool = True,
) -> ClientSettings:
    """Raises `InvalidSetting`; asks for a password where it may and somebody sits before the terminal."""
    for key in given:
        if key in _SECRETS:
            raise InvalidSetting(
                f"-X {key}: others could read it there; say it in a profile, in {VARIABLES[_SECRETS[key]]}, or as -X {key}.file=FILE"
            )
    outside: dict[str, str | GivenSecret] = {
        name.replace("_", "."): GivenSecret(environment[variable])
        if name in SECRETS
        else environment[variable]
        for name, variable in VARIABLES.items()
        if environment.get(variable)
    }
    if profile_name is None:
        said = _over(outside, given)
    else:
        said = _over(read_profile(profile_name).properties, given)
        said |= {key: outside[key] for key in _lacking(said) if key in outside}
    settings = settings_from(said)
    return replace(settings, security=_with_password(settings.security, may_ask=may_ask))


def _over(
    farther: Mapping[str, str | GivenSecret], nearer: Mapping[str, str | GivenSecret]
) -> dict[str, str | GivenSecret]:
    """The nearer word counts; a secret and the file it may lie in are one thing."""
    replaced = {f"{key}.file" for key in nearer} | {key.removesuffix(".file") for key in nearer}
    return {key: value for key, value in farther.items() if key not in replaced} | dict(nearer)


def _lacking(said: Mapping[str, object]) -> set[str]:
    """The secrets that these settings have a use for, and that they do not say."""
    uses = {
        "ssl.key.password": "ssl.certificate.location",
        "sasl.oauthbearer.client.secret": "sasl.oauthbearer.client.id",
    }
    uses["sasl.password"] = "sasl.username"
    return {
        secret for secret, use in uses.items() if use in said and not {secret, f"{secret}.file"} & set(said)
    }


def _with_password(security: ClientSecurity, *, may_ask: bool) -> ClientSecurity:
    if not security.needs_password():
        return security
    if not may_ask or not sys.stdin.isatty():
        raise InvalidSetting(
            f"user {security.sasl_username!r} has no password: say it in a profile, in {VARIABLES['sasl_password']}, or as "
            "-X sasl.password.file=FILE"
        )
    from getpass import getpass

    return replace(security, sasl_password=GivenSecret(getpass(f"Password of {security.sasl_username}: ")))


def _flat(table: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """`sasl.username = …` is a table in TOML. Names may be written with underscores, too."""
    flat: dict[str, object] = {}
    for key, value in table.items():
        name = f"{prefix}{key.replace('_', '.')}"
        flat |= _flat(value, f"{name}.") if isinstance(value, dict) else {name: value}
    return flat


def _written(profile: str, key: str, value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise InvalidSetting(f"profile {profile!r}: {key} must be text or a number")
