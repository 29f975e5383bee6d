"""One Kafka API: its key, its versions, its two messages, and the codecs between them and bytes.

Each file under `messages/` ends with `API: Final = Api(...)`. Making one costs nothing; a codec is compiled when
a version is first used.
"""

from collections.abc import Callable
from struct import error as layout_error
from typing import Any, Final, Generic, TypeAlias, TypeVar

from ropewalk.base.errors import ProtocolError
from ropewalk.base.limits import REQUEST_ELEMENTS_MAX
from ropewalk.wire.types import Buffer, Message

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)
M = TypeVar("M", bound=Message)

NEVER_FLEXIBLE: Final = 999

API_VERSIONS_KEY: Final = 18

OWN_KEY_FIRST: Final = 10_000
"""Keys from here on are ours: APIs between nodes, and from 10500 on those that clients are served. Kafka numbers its own from 0."""


class Api(Generic[Q, R]):
    """`versions` are all we can decode, which are Kafka 4.4's own; what is advertised may be fewer.

    Decoding refuses what does not begin with one whole message of that version with `ProtocolError`; bytes behind
    it are ignored, as Kafka does. Encoding trusts the message, which is ours: only values that do not fit their
    field are found, also as `ProtocolError`.
    """

    def __init__(
        self,
        *,
        key: int,
        name: str,
        versions: range,
        flexible_since: int,
        request: type[Q],
        response: type[R],
    ) -> None:
        self.key: Final = key
        self.name: Final = name
        self.versions: Final = versions
        self.flexible_since: Final = flexible_since
        self.request: Final[type[Q]] = request
        self.response: Final[type[R]] = response
        self._request_decoders: dict[int, Callable[[memoryview, int, int], Q]] = {}
        self._response_decoders: dict[int, Callable[[memoryview, int, int], R]] = {}
        self._request_encoders: dict[int, Callable[[Q], list[Buffer]]] = {}
        self._response_encoders: dict[int, Callable[[R], list[Buffer]]] = {}

    def __repr__(self) -> str:
        return f"<Api {self.name} {self.version_min}-{self.version_max}>"

    @property
    def version_min(self) -> int:
        return self.versions.start

    @property
    def version_max(self) -> int:
        return self.versions.stop - 1

    def is_flexible(self, version: int) -> bool:
        """Whether `version` has compact lengths and tagged sections, in its body and in its headers."""
        return version >= self.flexible_since

    def decode_request(self, version: int, buffer: memoryview, position: int, end: int) -> Q:
        decode = self._request_decoders.get(version)
        if decode is None:
            decode = self._request_decoders[version] = self._decoder(
                self.request, version, REQUEST_ELEMENTS_MAX
            )
        try:
            return decode(buffer, position, end)
        except UnicodeDecodeError as problem:
            raise ProtocolError(f"{self.name} request v{version} has a string that is not UTF-8") from problem
        except (layout_error, IndexError) as problem:
            raise ProtocolError(f"{self.name} request v{version} is cut short") from problem

    def decode_response(self, version: int, buffer: memoryview, position: int, end: int) -> R:
        decode = self._response_decoders.get(version)
        if decode is None:
            decode = self._response_decoders[version] = self._decoder(self.response, version, None)
        try:
            return decode(buffer, position, end)
        except UnicodeDecodeError as problem:
            raise ProtocolError(
                f"{self.name} response v{version} has a string that is not UTF-8"
            ) from problem
        except (layout_error, IndexError) as problem:
            raise ProtocolError(f"{self.name} response v{version} is cut short") from problem

    def encode_request(self, version: int, message: Q) -> list[Buffer]:
        encode = self._request_encoders.get(version)
        if encode is None:
            encode = self._request_encoders[version] = self._encoder(self.request, version)
        try:
            return encode(message)
        except layout_error as problem:
            raise ProtocolError(
                f"{self.name} request v{version} cannot carry a value: {problem}"
            ) from problem

    def encode_response(self, version: int, message: R) -> list[Buffer]:
        encode = self._response_encoders.get(version)
        if encode is None:
            encode = self._response_encoders[version] = self._encoder(self.response, version)
        try:
            return encode(message)
        except layout_error as problem:
            raise ProtocolError(
                f"{self.name} response v{version} cannot carry a value: {problem}"
            ) from problem

    def _decoder(
        self, message: type[M], version: int, elements_max: int | None
    ) -> Callable[[memoryview, int, int], M]:
        # Imported here so that naming an API, as the command line does, does not load the compiler.
        from ropewalk.wire.compile import compile_decoder

        self._check_version(version)
        return compile_decoder(
            message, version, flexible=self.is_flexible(version), elements_max=elements_max
        )

    def _encoder(self, message: type[M], version: int) -> Callable[[M], list[Buffer]]:
        from ropewalk.wire.compile import compile_encoder

        self._check_version(version)
        return compile_encoder(message, version, flexible=self.is_flexible(version))

    def _check_version(self, version: int) -> None:
        if version not in self.versions:
            raise ProtocolError(
                f"{self.name} v{version} is not one of the versions {self.version_min} to {self.version_max}"
            )


AnyApi: TypeAlias = Api[Any, Any]
"""For tables of APIs: which messages one has is known only by asking it."""
