"""An authority that signs tokens: its keys, its JWKS, and tokens that are good or bad in one way."""

import hmac
import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Any, Final

from joserfc import jws
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from ropewalk.security.bearer import Expected

ISSUER: Final = "https://issuer.example/realms/rope"
AUDIENCE: Final = "ropewalk"
EXPECTED: Final = Expected(issuer=ISSUER, audiences=("somebody", AUDIENCE))

RSA: Final = RSAKey.generate_key(2048, {"kid": "rsa"})
OTHER_RSA: Final = RSAKey.generate_key(2048, {"kid": "rsa"})
"""Of somebody else, by the same name."""
EC: Final = ECKey.generate_key("P-256", {"kid": "ec"})
EC_384: Final = ECKey.generate_key("P-384", {"kid": "ec-384"})
EC_521: Final = ECKey.generate_key("P-521", {"kid": "ec-521"})
ED: Final = OKPKey.generate_key("Ed25519", {"kid": "ed"})
KEYS: Final = (RSA, EC, EC_384, EC_521, ED)

AnyKey = RSAKey | ECKey | OKPKey | OctKey


def jwks(*keys: AnyKey, **more: Any) -> bytes:
    """What the authority shows; `more` goes into every key."""
    shown = [{**key.as_dict(private=False), **more} for key in keys or KEYS]
    return json.dumps({"keys": shown}).encode()


def claims(now_ms: int, subject: str | None = "alice", **changed: Any) -> dict[str, Any]:
    """Those of a good token; None takes one away."""
    now_s = now_ms // 1000
    said = {"iss": ISSUER, "aud": AUDIENCE, "sub": subject, "iat": now_s, "exp": now_s + 300, **changed}
    return {name: value for name, value in said.items() if value is not None}


def sign(said: Mapping[str, Any] | bytes, key: AnyKey = RSA, alg: str = "RS256", **header: Any) -> str:
    protected = {"alg": alg, "kid": key.kid, "typ": "JWT", **header}
    protected = {name: value for name, value in protected.items() if value is not None}
    payload = said if isinstance(said, bytes) else json.dumps(said).encode()
    registry = jws.JWSRegistry(algorithms=[alg], strict_check_header=False)
    registry.max_header_length = registry.max_payload_length = 1 << 20
    return jws.serialize_compact(protected, payload, key, registry=registry)


def by_hand(header: bytes, payload: bytes, signature: bytes) -> str:
    return ".".join(segment(part) for part in (header, payload, signature))


def with_the_public_key(said: Mapping[str, Any]) -> str:
    """By HMAC, with what everybody knows for a secret: it is believed where the token chooses the algorithm."""
    header = b'{"alg":"HS256","kid":"rsa"}'
    signed = f"{segment(header)}.{segment(json.dumps(said).encode())}"
    return f"{signed}.{segment(hmac.digest(RSA.as_pem(private=False), signed.encode(), 'sha256'))}"


def segment(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def presented(token: str, acting_as: str = "", extensions: str = "") -> bytes:
    """As a client of OAUTHBEARER sends it."""
    name = f"a={acting_as}" if acting_as else ""
    return f"n,{name},\x01auth=Bearer {token}\x01{extensions}\x01".encode()
