"""Names in certificates: spelled as Java spells them, and made into principals by rules as Kafka has them."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.errors import InvalidSetting
from ropewalk.security.distinguished_names import spelled
from ropewalk.security.principal_rules import PrincipalRules

AS_JAVA_SPELLS_THEM = [
    (
        "3045310b300906035504061302444531163014060355040a0c0d4578616d706c652c20496e632e310e300c060355040b0c055573657273310e300c06035504030c05616c696365",
        "CN=alice,OU=Users,O=Example\\, Inc.,C=DE",
    ),
    (
        "3061310a300806035504080c0158310a300806035504070c0159310c300a06035504090c035a203131133011060a0992268993f22c64011916036f726731123010060a0992268993f22c6401010c0275313110300e06035504030c07626f622b783d79",
        "CN=bob\\+x\\=y,UID=u1,DC=org,STREET=Z 1,L=Y,ST=X",
    ),
    (
        "302731133011060355040a0c0a782c434e3d61646d696e3110300e06035504030c076d616c6c6f7279",
        "CN=mallory,O=x\\,CN\\=admin",
    ),
    (
        "30403114301206092a864886f70d01090116056140622e63310c300a06035504051303313233310c300a060355042a0c03416e6e310c300a06035504030c03616e6e",
        "CN=ann,2.5.4.42=#0c03416e6e,2.5.4.5=#1303313233,1.2.840.113549.1.9.1=#16056140622e63",
    ),
    (
        "3039312b3009060355040b0c024f55300c06035504030c056d756c74693010060a0992268993f22c6401010c026d31310a3008060355040a0c016f",
        "O=o,OU=OU+CN=multi+UID=m1",
    ),
    ("301b3119301706035504030c10206c65616420616e6420747261696c20", "CN=\\ lead and trail\\ "),
    ("301c311a301806035504030c1123686173682023203c613e3b2262225c63", 'CN=\\#hash \\# \\<a\\>\\;\\"b\\"\\\\c'),
    ("301c311a301806035504030c114ac3bc7267656e20cea920e697a5e69cac", "CN=Jürgen Ω 日本"),
    ("30123110300e0603550403140774656c65746578", "CN=teletex"),
    (
        "302231143012060b2a864886f70d0109bd843f0c036f6464310a300806035504030c0171",
        "CN=q,1.2.840.113549.1.9.999999=#0c036f6464",
    ),
    ("301e310c300a06035504030c0374776f310e300c06035504030c056e616d6573", "CN=names,CN=two"),
    ("30133111300f06035504030c087461620968657265", "CN=tab\there"),
]
"""Names in DER, and what `new X500Principal(der).getName()` of Java 17 said of them."""


@pytest.mark.parametrize(
    ("der", "expected"), AS_JAVA_SPELLS_THEM, ids=[java for _, java in AS_JAVA_SPELLS_THEM]
)
def test_names_are_spelled_as_java_spells_them(der: str, expected: str) -> None:
    assert spelled(bytes.fromhex(der)) == expected


def test_a_value_in_a_seldom_encoding_is_given_as_bytes() -> None:
    assert spelled(bytes.fromhex("3011310f300d06035504031e060062006d0070")) == "CN=#1e060062006d0070"


@given(st.binary(max_size=60) | st.binary(max_size=40).map(lambda body: b"\x30" + bytes([len(body)]) + body))
def test_bytes_that_are_no_name_are_refused_and_nothing_else_happens(data: bytes) -> None:
    with suppress(ValueError):
        assert isinstance(spelled(data), str)


@pytest.mark.parametrize(
    ("rules", "name", "expected"),
    [
        ("DEFAULT", "CN=a,O=b", "CN=a,O=b"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "CN=kafka,OU=ServiceUsers,O=x", "kafka"),
        ("RULE:^CN=(.*?),OU=(.*?),O=(.*?)$/$1@$2/L", "CN=Ann,OU=Dev,O=x", "ann@dev"),
        ("RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U", "cn=bob,o=x", "BOB"),
        ("RULE:^CN=(a)$/first/,RULE:^CN=(.)$/second/,DEFAULT", "CN=b", "second"),
        ("RULE:^CN=(a)$/first/ , DEFAULT", "CN=b", "CN=b"),
        ("RULE:^CN=(a)$/first/", "CN=ab", None),
        (r"RULE:^CN=(.*)\/(.*)$/$2-$1/", "CN=a/b", "b-a"),
        (r"RULE:^CN=(.*)$/\$$1\/$12$7/", "CN=a", "$a/a2$7"),
        ("RULE:^CN=(a)|CN=(b)$/[$1$2]/", "CN=b", "[b]"),
    ],
)
def test_the_first_rule_that_matches_the_whole_name_counts(
    rules: str, name: str, expected: str | None
) -> None:
    assert PrincipalRules(rules).apply(name) == expected


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ("", "neither DEFAULT nor RULE"),
        ("DEFAULT,", "neither DEFAULT nor RULE"),
        ("RULE:a/b", "neither DEFAULT nor RULE"),
        ("RULE:a/b/X", "neither DEFAULT nor RULE"),
        ("default", "neither DEFAULT nor RULE"),
        ("RULE:(/b/", "no expression of RE2"),
        (r"RULE:(?=a)b/b/", "no expression of RE2"),
        ("RULE:a/$x/", "a group is \\$ and its number"),
    ],
)
def test_rules_that_are_none_are_refused(rules: str, words: str) -> None:
    with pytest.raises(InvalidSetting, match=words):
        PrincipalRules(rules)
