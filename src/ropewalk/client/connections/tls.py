"""TLS as a client wants it: contexts from its settings, and what went wrong, in words that say what to set.

What a reader could get wrong
    A context is made again when one of its files has changed: certificates are replaced while a client runs.
"""

import os
import ssl
from pathlib import Path
from typing import Final

from ropewalk.base.errors import InvalidSetting
from ropewalk.client.connections.secret import refuse_others
from ropewalk.client.connections.security import ClientSecurity

_WRONG_NAME: Final = frozenset({62, 64})
_NOT_IN_TIME: Final = {9: "its certificate is not valid yet", 10: "its certificate has expired"}
_UNKNOWN_AUTHORITY: Final = frozenset({2, 18, 19, 20, 21, 27})
"""Of OpenSSL's reasons, `X509_V_ERR_…`."""

_WANTS_CERTIFICATE: Final = frozenset({"TLSV13_ALERT_CERTIFICATE_REQUIRED", "SSLV3_ALERT_HANDSHAKE_FAILURE"})
_REFUSES_CERTIFICATE: Final = {
    "TLSV1_ALERT_UNKNOWN_CA": "it does not know the authority that gave it",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "it has expired",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "it was revoked",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it is not good",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it is not taken",
    "TLSV1_ALERT_ACCESS_DENIED": "it has no access",
}
_NO_TLS: Final = frozenset(
    {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNEXPECTED_MESSAGE", "PACKET_LENGTH_TOO_LONG"}
)


class TlsSource:
    """A `TlsContexts` of one client. Raises `InvalidSetting` for a file that cannot be used."""

    def __init__(self, security: ClientSecurity) -> None:
        self._security = security
        self._made: tuple[tuple[object, ...], ssl.SSLContext] | None = None

    def __call__(self) -> ssl.SSLContext:
        security = self._security
        stamps = tuple(
            _stamp(path)
            for path in (
                security.ssl_ca_location,
                security.ssl_certificate_location,
                security.ssl_key_location,
            )
        )
        if self._made is None or self._made[0] != stamps:
            self._made = (stamps, client_context(security))
        return self._made[1]


def client_context(security: ClientSecurity) -> ssl.SSLContext:
    """Raises `InvalidSetting`, with the setting and the file."""
    context = context_trusting("ssl_ca_location", security.ssl_ca_location)
    context.check_hostname = security.ssl_endpoint_identification_algorithm == "https"
    if security.ssl_certificate_location is not None:
        _present(context, security, security.ssl_certificate_location)
    return context


def context_trusting(setting: str, location: str | None) -> ssl.SSLContext:
    """Trusts the authorities at `location`, a file or a directory; None: those of the operating system."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if location is None:
        context.load_default_certs()
        return context
    path = Path(location).expanduser()
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # what somebody names is trusted, root or not
    try:
        if path.is_dir():
            context.load_verify_locations(capath=str(path))
        else:
            context.load_verify_locations(cafile=str(path))
    except ssl.SSLError:
        raise InvalidSetting(f"{setting}: there is no certificate in PEM in {location}") from None
    except OSError as error:
        raise InvalidSetting(f"{setting}: {location} cannot be read: {error.strerror or error}") from None
    return context


def _present(context: ssl.SSLContext, security: ClientSecurity, certificate: str) -> None:
    key = security.ssl_key_location or certificate
    setting = "ssl_certificate_location" if security.ssl_key_location is None else "ssl_key_location"
    for name, path in (("ssl_certificate_location", certificate), (setting, key)):
        try:
            mode = Path(path).expanduser().stat().st_mode
            with Path(path).expanduser().open("rb"):
                pass
        except OSError as error:
            raise InvalidSetting(f"{name}: {path} cannot be read: {error.strerror or error}") from None
        if path == key:
            refuse_others(name, path, mode)
    password = security.ssl_key_password
    try:
        context.load_cert_chain(
            str(Path(certificate).expanduser()),
            str(Path(key).expanduser()),
            # Without one OpenSSL would ask at the terminal.
            password=lambda: "" if password is None else password.reveal(),
        )
    except (ssl.SSLError, ValueError) as error:
        raise InvalidSetting(
            f"{setting}: {key} {_why_not_loaded(error, has_password=password is not None)}"
        ) from None


def _why_not_loaded(error: ValueError | ssl.SSLError, *, has_password: bool) -> str:
    reason = getattr(error, "reason", None) or ""
    if reason == "KEY_VALUES_MISMATCH":
        return "is not the key of the certificate in ssl_certificate_location"
    if reason in (
        "BAD_DECRYPT",
        "BAD_PASSWORD_READ",
        "MAYBE_WRONG_PASSWORD",
        "PKCS12_CIPHERFINAL_ERROR",
    ) or "password" in str(error):
        return (
            "cannot be opened with ssl_key_password" if has_password else "is encrypted: say ssl_key_password"
        )
    return "has no certificate, or no key, in PEM that can be used"


def why_tls_failed(error: ssl.SSLError, *, has_certificate: bool) -> str:
    """What went wrong, and what to set."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _why_not_verified(error)
    reason = error.reason or ""
    if reason in _NO_TLS:
        return "it does not speak TLS there: use its port for TLS, or set security_protocol to PLAINTEXT or SASL_PLAINTEXT"
    if has_certificate and reason in _REFUSES_CERTIFICATE:
        return f"it refuses this client's certificate, {_REFUSES_CERTIFICATE[reason]}: see ssl_certificate_location"
    if not has_certificate and (reason in _WANTS_CERTIFICATE or reason in _REFUSES_CERTIFICATE):
        return "it may want a certificate of this client: set ssl_certificate_location and ssl_key_location"
    return f"TLS failed: {(reason or str(error)).replace('_', ' ').lower()}"


def _why_not_verified(error: ssl.SSLCertVerificationError) -> str:
    code = error.verify_code
    if code in _WRONG_NAME:
        return (
            f"its certificate is for another host: {error.verify_message.rstrip('.').lower()}; connect by a name that it has, or set "
            "ssl_endpoint_identification_algorithm=none where any certificate of the authority will do"
        )
    if code in _NOT_IN_TIME:
        return f"{_NOT_IN_TIME[code]}: it needs another one"
    if code in _UNKNOWN_AUTHORITY:
        return f"its certificate is not trusted ({error.verify_message}): set ssl_ca_location to the authority that gave it"
    return f"its certificate is refused: {error.verify_message}"


def _stamp(path: str | None) -> tuple[int, int, int] | None:
    if path is None:
        return None
    try:
        found = os.stat(Path(path).expanduser())
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
