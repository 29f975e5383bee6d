"""Object stores: where one is and by which keys, resolved in one place and handed to everybody who writes there.

    [pipeline.orders.storage]
    endpoint = "http://127.0.0.1:9000"
    access_key_id = "orders"
    secret_access_key_file = "/run/secrets/orders"

What is not said there comes from the environment, by the names that Amazon's own tools read, or from a profile of their files. Where nobody
names keys (a machine or a pod that has a role), each library finds them by itself.

What a reader could get wrong
    Delta, Arrow, Iceberg and Spark's Hadoop client each have names of their own for the same few settings. All of these names are here.
    Keys go to tasks with the task, since the environment of another machine is another one. They are in no text that is shown or logged:
    `repr` leaves them out, and there is no option of a command line for them.
    Keys belong together: an access key of the file is never used with a secret or a token of the environment.
"""

import os
from collections.abc import Mapping
from configparser import ConfigParser
from configparser import Error as ConfigError
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from ropewalk.spark.pipelines.nearest import nearest
from ropewalk.spark.refusals import WrongUse

SCHEMES: Final = ("s3", "s3a")
PATIENCE_S: Final = 60
"""How long a store may answer with errors that pass, such as "slow down", before a batch is given up. Nothing is lost by giving up."""
CONNECT_S: Final = 5
RETRIES_MAX: Final = 10
_REGION_OF_ANY: Final = "us-east-1"
"""What servers other than Amazon's want to hear when they do not care."""


class StorageTable(Struct, frozen=True, kw_only=True):
    """`[pipeline.NAME.storage]` of a file. None is: not said."""

    endpoint: str | None = None
    """The URL of the server. Amazon's own unless told."""
    region: str | None = None
    access_key_id: str | None = None
    secret_access_key: str | None = None
    secret_access_key_file: str | None = None
    """A file that holds it, in place of `secret_access_key`."""
    session_token: str | None = None
    virtual_hosts: bool | None = None
    """Whether a bucket's name is part of the host's name. True at Amazon, false with an endpoint unless told."""
    patience_seconds: int = PATIENCE_S

    def __repr__(self) -> str:
        return f"StorageTable({shown(msgspec.to_builtins(self))})"


class Storage(Struct, frozen=True, kw_only=True):
    """What everybody is told who writes to an object store. None: it is not known here, and whoever needs it finds it by itself."""

    endpoint: str | None = None
    region: str | None = None
    access_key_id: str | None = None
    secret_access_key: str | None = None
    session_token: str | None = None
    virtual_hosts: bool = False
    patience_s: int = PATIENCE_S

    def __repr__(self) -> str:
        return f"Storage({shown(msgspec.to_builtins(self))})"

    def for_delta(self) -> dict[str, str]:
        """Options of delta-rs, and of everything else that is built on the object_store crate."""
        told = {
            "aws_endpoint": self.endpoint,
            "aws_region": self.region,
            "aws_access_key_id": self.access_key_id,
            "aws_secret_access_key": self.secret_access_key,
            "aws_session_token": self.session_token,
            "aws_virtual_hosted_style_request": _truth(self.virtual_hosts) if self.endpoint else None,
            "aws_conditional_put": "etag",
            "allow_http": _truth(self._is_plain),
            "connect_timeout": f"{CONNECT_S}s",
            "timeout": f"{self.patience_s}s",
            "max_retries": str(RETRIES_MAX),
            "retry_timeout": f"{self.patience_s}s",
        }
        return {name: value for name, value in told.items() if value is not None}

    def for_arrow(self) -> dict[str, object]:
        """What `pyarrow.fs.S3FileSystem` is made with."""
        told: dict[str, object | None] = {
            "endpoint_override": self.endpoint,
            "region": self.region,
            "access_key": self.access_key_id,
            "secret_key": self.secret_access_key,
            "session_token": self.session_token,
            "force_virtual_addressing": self.virtual_hosts if self.endpoint else None,
            "connect_timeout": CONNECT_S,
            "request_timeout": self.patience_s,
        }
        return {name: value for name, value in told.items() if value is not None}

    def for_iceberg(self) -> dict[str, str]:
        """Properties of a catalog of pyiceberg. They are not kept in tables."""
        told = {
            "s3.endpoint": self.endpoint,
            "s3.region": self.region,
            "s3.access-key-id": self.access_key_id,
            "s3.secret-access-key": self.secret_access_key,
            "s3.session-token": self.session_token,
            "s3.force-virtual-addressing": _truth(self.virtual_hosts) if self.endpoint else None,
            "s3.connect-timeout": str(CONNECT_S),
            "s3.request-timeout": str(self.patience_s),
        }
        return {name: value for name, value in told.items() if value is not None}

    def for_hadoop(self) -> dict[str, str]:
        """Settings of Hadoop's `s3a`, for Spark itself. They are put into a running session: Spark's own options are on a command line."""
        told = {
            "fs.s3a.endpoint": self.endpoint,
            "fs.s3a.endpoint.region": self.region,
            "fs.s3a.access.key": self.access_key_id,
            "fs.s3a.secret.key": self.secret_access_key,
            "fs.s3a.session.token": self.session_token,
            "fs.s3a.path.style.access": _truth(not self.virtual_hosts) if self.endpoint else None,
            "fs.s3a.connection.ssl.enabled": "false" if self._is_plain else None,
        }
        return {name: value for name, value in told.items() if value is not None}

    @property
    def _is_plain(self) -> bool:
        return self.endpoint is not None and self.endpoint.startswith("http://")


def is_object_store(address: str) -> bool:
    return urlsplit(address).scheme in SCHEMES


def as_written(address: str) -> str:
    """`s3a://` is Hadoop's name for what everybody else calls `s3://`."""
    return f"s3://{address[len('s3a://') :]}" if address.startswith("s3a://") else address


def bucket_and_key(address: str) -> tuple[str, str]:
    parts = urlsplit(address)
    if not parts.netloc:
        raise WrongUse(f"{address} names no bucket; write s3://BUCKET/DIRECTORY")
    return parts.netloc, parts.path.strip("/")


def resolve(said: Mapping[str, object], environment: Mapping[str, str], where: str = "storage") -> Storage:
    """From what a file says, the environment and the profile that it names, the first that says anything."""
    table = _table(said, where)
    profile = _profile(environment)
    keys = _keys(table, environment, profile, where)
    endpoint = (
        table.endpoint
        or environment.get("AWS_ENDPOINT_URL_S3")
        or environment.get("AWS_ENDPOINT_URL")
        or profile.get("endpoint_url")
        or None
    )
    region = (
        table.region
        or environment.get("AWS_REGION")
        or environment.get("AWS_DEFAULT_REGION")
        or profile.get("region")
        or (_REGION_OF_ANY if endpoint else None)
    )
    if endpoint is not None:
        _check_endpoint(endpoint)
    return Storage(
        endpoint=endpoint.rstrip("/") if endpoint else None,
        region=region,
        access_key_id=keys[0],
        secret_access_key=keys[1],
        session_token=keys[2],
        virtual_hosts=table.virtual_hosts if table.virtual_hosts is not None else endpoint is None,
        patience_s=table.patience_seconds,
    )


def shown(said: Mapping[str, object]) -> dict[str, object]:
    """For people: without what is secret."""
    return {
        name: "…" if value and name in _SECRET else value for name, value in said.items() if value is not None
    }


_SECRET: Final = frozenset({"secret_access_key", "session_token"})
_Keys = tuple[str | None, str | None, str | None]


def _table(said: Mapping[str, object], where: str) -> StorageTable:
    for name in said:
        if name not in StorageTable.__struct_fields__:
            raise WrongUse(f"{where} does not know {name!r}{nearest(name, StorageTable.__struct_fields__)}")
    try:
        table = msgspec.convert(dict(said), StorageTable)
    except msgspec.ValidationError as error:
        raise WrongUse(f"{where}: {error}") from None
    if table.patience_seconds < 1:
        raise WrongUse(f"{where}: patience_seconds is {table.patience_seconds}, must be at least 1")
    return table


def _keys(
    table: StorageTable, environment: Mapping[str, str], profile: Mapping[str, str], where: str
) -> _Keys:
    if table.secret_access_key and table.secret_access_key_file:
        raise WrongUse(f"{where}: give secret_access_key or secret_access_key_file, one of them")
    secret = table.secret_access_key
    if table.secret_access_key_file:
        try:
            secret = Path(table.secret_access_key_file).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise WrongUse(f"{where}: secret_access_key_file cannot be read: {error}") from None
    if bool(table.access_key_id) != bool(secret):
        raise WrongUse(f"{where}: access_key_id and its secret go together; one of them is missing")
    if table.access_key_id:
        return table.access_key_id, secret, table.session_token
    access = environment.get("AWS_ACCESS_KEY_ID")
    secret = environment.get("AWS_SECRET_ACCESS_KEY")
    if bool(access) != bool(secret):
        raise WrongUse("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY go together; one of them is not set")
    if access:
        return access, secret, environment.get("AWS_SESSION_TOKEN") or None
    return (
        profile.get("aws_access_key_id"),
        profile.get("aws_secret_access_key"),
        profile.get("aws_session_token"),
    )


def _profile(environment: Mapping[str, str]) -> dict[str, str]:
    """What the files of Amazon's tools say of the profile in use. Those that get their keys by a program or a login say none here."""
    name = environment.get("AWS_PROFILE") or environment.get("AWS_DEFAULT_PROFILE") or "default"
    home = os.path.join(environment.get("HOME", os.path.expanduser("~")), ".aws")
    found: dict[str, str] = {}
    for path, section in (
        (environment.get("AWS_CONFIG_FILE") or os.path.join(home, "config"), f"profile {name}"),
        (environment.get("AWS_SHARED_CREDENTIALS_FILE") or os.path.join(home, "credentials"), name),
    ):
        parser = ConfigParser(interpolation=None)
        try:
            parser.read(path, encoding="utf-8")
        except (ConfigError, UnicodeDecodeError, OSError) as error:
            raise WrongUse(f"{path} cannot be read: {' '.join(str(error).split())}") from None
        for each in (section, name) if name == "default" else (section,):
            if parser.has_section(each):
                found |= dict(parser.items(each))
    return found


def _check_endpoint(endpoint: str) -> None:
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise WrongUse(f"the endpoint {endpoint!r} is no URL; write https://HOST or http://HOST:PORT")


def _truth(value: bool) -> str:
    return "true" if value else "false"
