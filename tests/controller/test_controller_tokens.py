"""Decisions about the keys of the cluster's own tokens."""

import pytest

from ropewalk.base.errors import InvalidRequest, NotInForce, PolicyViolation, UnknownUser
from ropewalk.base.limits import TOKEN_KEY_SIGNS_MS, TOKEN_KEYS_MAX, TOKEN_LIFETIME_MS_MAX
from ropewalk.controller.tokens import NewKey, decide_issue, decide_replace_key
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import (
    ClusterCreated,
    LevelChanged,
    ScramCredentialSet,
    TokenKeyAdded,
    TokenKeyRemoved,
)
from ropewalk.security.tokens import Issued

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
WEEK_MS = 7 * 24 * HOUR_MS


def new(number: int) -> NewKey:
    return NewKey(f"k{number}", bytes([number]) * 32)


class Cluster:
    def __init__(self, level: int = 2) -> None:
        self.image = Image()
        self.image.apply(ClusterCreated("here"))
        self.image.apply(LevelChanged(level))
        self.image.apply(ScramCredentialSet("alice", 1, 4096, b"salt", b"stored", b"server"))
        self._count = 0

    def issue(self, now_ms: int, user: str = "alice", lifetime_ms: int = HOUR_MS) -> Issued:
        self._count += 1
        decided = decide_issue(self.image, user, lifetime_ms=lifetime_ms, new=new(self._count), now_ms=now_ms)
        self.image.apply_all(decided.records)
        return decided.issued

    def replace(self, now_ms: int, *, is_known_to_others: bool = False) -> None:
        self._count += 1
        self.image.apply_all(
            decide_replace_key(
                self.image, new=new(self._count), is_known_to_others=is_known_to_others, now_ms=now_ms
            )
        )

    @property
    def keys(self) -> list[str]:
        return [each.key_id for each in self.image.token_keys.keys]


def test_the_first_token_makes_a_key_and_the_next_do_not() -> None:
    cluster = Cluster()
    assert not cluster.keys
    first = cluster.issue(NOW_MS)
    assert (first.user, first.ends_at_ms) == ("alice", NOW_MS + HOUR_MS)
    cluster.issue(NOW_MS + 1)
    assert cluster.keys == ["k1"]


def test_a_key_that_is_old_is_followed_by_another_and_forgotten_once_its_tokens_have_ended() -> None:
    cluster = Cluster()
    cluster.issue(NOW_MS)
    cluster.issue(NOW_MS + TOKEN_KEY_SIGNS_MS)
    assert cluster.keys == ["k1", "k2"]
    cluster.issue(NOW_MS + 2 * TOKEN_KEY_SIGNS_MS)
    assert cluster.keys == ["k2", "k3"]


def test_keys_are_replaced_when_somebody_says_so() -> None:
    cluster = Cluster()
    cluster.issue(NOW_MS)
    cluster.replace(NOW_MS + 1)
    assert cluster.keys == ["k1", "k2"]
    cluster.replace(NOW_MS + 2, is_known_to_others=True)
    assert cluster.keys == ["k3"]


def test_no_more_keys_are_kept_than_there_may_be() -> None:
    cluster = Cluster()
    for number in range(TOKEN_KEYS_MAX):
        cluster.replace(NOW_MS + number)
    with pytest.raises(PolicyViolation, match=f"at most {TOKEN_KEYS_MAX}"):
        cluster.replace(NOW_MS + HOUR_MS)
    cluster.replace(NOW_MS + WEEK_MS + HOUR_MS)
    assert len(cluster.keys) == 2, "the last one signs to this day"
    cluster.replace(NOW_MS + WEEK_MS + HOUR_MS, is_known_to_others=True)
    assert len(cluster.keys) == 1


@pytest.mark.parametrize("lifetime_ms", [0, -2, TOKEN_LIFETIME_MS_MAX + 1])
def test_tokens_last_for_a_while_and_no_longer(lifetime_ms: int) -> None:
    with pytest.raises(InvalidRequest, match=f"a token of {lifetime_ms} ms"):
        Cluster().issue(NOW_MS, lifetime_ms=lifetime_ms)


def test_there_are_none_for_who_is_no_user() -> None:
    with pytest.raises(UnknownUser, match="no user 'bob' with a password"):
        Cluster().issue(NOW_MS, "bob")


def test_nothing_is_written_before_its_level() -> None:
    cluster = Cluster(level=1)
    with pytest.raises(NotInForce, match="came with level 2"):
        cluster.issue(NOW_MS)
    with pytest.raises(NotInForce, match="came with level 2"):
        cluster.replace(NOW_MS)


def test_the_facts_of_an_image_rebuild_its_keys() -> None:
    cluster = Cluster()
    cluster.issue(NOW_MS)
    cluster.replace(NOW_MS + HOUR_MS)
    facts = list(cluster.image.facts())
    assert [type(each) for each in facts].count(TokenKeyAdded) == 2
    again = Image()
    again.replace(facts, cluster.image.end_offset)
    assert again.token_keys.keys == cluster.image.token_keys.keys
    again.apply(TokenKeyRemoved("k1"))
    assert set(again.token_keys.by_id) == {"k2"}
    assert new(1).key.hex() not in repr(facts)
