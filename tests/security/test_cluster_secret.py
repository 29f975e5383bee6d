"""Proofs of the cluster's secret: what they cover, and which secrets are accepted while one is changed."""

import pytest
from msgspec import structs

from ropewalk.base.errors import InvalidSetting
from ropewalk.security.cluster_secret import Channel, ClusterSecret, Handshake, Side, offered_digest

NOW, FORMER, OTHER = "a secret of this cluster", "the secret before that", "a secret of another cluster"
OFFERED = ((1, 4, 18), (10_000, 0, 1), (18, 0, 5))
CHANNEL = Channel(bytes(range(32)), offered_digest(OFFERED), ("broker", "frontend"))
HANDSHAKE = Handshake(bytes(range(32)), bytes(range(100, 132)), 1, 2, CHANNEL)


def with_channel(**changes: object) -> Handshake:
    return structs.replace(HANDSHAKE, channel=structs.replace(CHANNEL, **changes))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(
            structs.replace(HANDSHAKE, caller_nonce=b"\xff" + HANDSHAKE.caller_nonce[1:]), id="caller's nonce"
        ),
        pytest.param(
            structs.replace(HANDSHAKE, answerer_nonce=b"\xff" + HANDSHAKE.answerer_nonce[1:]),
            id="answerer's nonce",
        ),
        pytest.param(
            structs.replace(HANDSHAKE, answerer_nonce=HANDSHAKE.answerer_nonce[:-1] + b"\xff"), id="its end"
        ),
        pytest.param(structs.replace(HANDSHAKE, caller_id=3), id="caller"),
        pytest.param(structs.replace(HANDSHAKE, answerer_id=3), id="answerer"),
        pytest.param(structs.replace(HANDSHAKE, channel=None), id="no channel"),
        pytest.param(with_channel(certificate_hash=bytes(32)), id="another certificate"),
        pytest.param(with_channel(certificate_hash=None), id="no certificate"),
        pytest.param(with_channel(offered=offered_digest(OFFERED[1:])), id="an API less"),
        pytest.param(with_channel(offered=offered_digest(((1, 4, 17), *OFFERED[1:]))), id="a version less"),
        pytest.param(with_channel(roles=("broker",)), id="a role less"),
    ],
)
@pytest.mark.parametrize("side", list(Side))
def test_a_proof_is_good_for_one_handshake_on_one_channel(side: Side, other: Handshake) -> None:
    secret = ClusterSecret(NOW)
    proof = secret.prove(side, HANDSHAKE)
    assert secret.accepts(proof, side, HANDSHAKE)
    assert not secret.accepts(proof, side, other)
    assert not secret.accepts(proof, Side.CALLER if side is Side.ANSWERER else Side.ANSWERER, HANDSHAKE)


def test_the_order_in_which_apis_are_offered_means_nothing() -> None:
    assert offered_digest(OFFERED) == offered_digest(reversed(OFFERED))


@pytest.mark.parametrize(
    ("caller", "answerer", "is_accepted"),
    [
        ((FORMER,), (FORMER,), True),
        ((NOW, FORMER), (FORMER,), True),
        ((FORMER,), (NOW, FORMER), True),
        ((NOW, FORMER), (NOW, FORMER), True),
        ((NOW,), (NOW, FORMER), True),
        ((NOW, FORMER), (NOW,), True),
        ((NOW,), (NOW,), True),
        ((FORMER, FORMER), (FORMER,), True),
        ((FORMER,), (NOW,), False),
        ((NOW,), (FORMER,), False),
        ((OTHER, FORMER), (NOW,), False),
        ((OTHER,), (NOW, FORMER), False),
    ],
)
def test_two_nodes_agree_wherever_one_secret_is_known_to_both(
    caller: tuple[str, ...], answerer: tuple[str, ...], is_accepted: bool
) -> None:
    """As `Hello` and `Prove` go, in any order in which nodes come to know the next secret."""
    calls, answers = ClusterSecret(*caller), ClusterSecret(*answerer)
    proofs = (answers.prove(Side.ANSWERER, HANDSHAKE), answers.prove_former(Side.ANSWERER, HANDSHAKE))
    key = calls.proved_by(proofs, Side.ANSWERER, HANDSHAKE)
    assert (key is not None) == is_accepted
    if key is not None:
        assert answers.accepts(key.prove(Side.CALLER, HANDSHAKE), Side.CALLER, HANDSHAKE)


def test_an_empty_proof_is_none() -> None:
    assert not ClusterSecret(NOW).accepts(b"", Side.CALLER, HANDSHAKE)


def test_a_secret_that_is_too_short_changes_nothing() -> None:
    secret = ClusterSecret(NOW)
    proof = secret.prove(Side.CALLER, HANDSHAKE)
    for short in (("short", ""), (OTHER, "short")):
        with pytest.raises(InvalidSetting, match="has 5 characters"):
            secret.change(*short)
    assert secret.accepts(proof, Side.CALLER, HANDSHAKE)
