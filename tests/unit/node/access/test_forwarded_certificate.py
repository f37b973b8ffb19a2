import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.access.forwarded_certificate import (
    TEXT_MAX,
    common_name,
    forwarded_name,
    last_element,
)
from support.tools.example_counts import example_count

HASH = "468ed33be74eee6556d90c0149c1309e9ba61d6425303443c0748a02dd8de688"
# The example of Envoy's documentation.
TWO = (
    f"By=http://frontend.lyft.com;Hash={HASH};URI=http://testclient.lyft.com,"
    f"By=http://backend.lyft.com;Hash={HASH.upper()};URI=http://frontend.lyft.com"
)


@pytest.mark.parametrize(
    ("header", "name"),
    [
        (TWO, "http://frontend.lyft.com"),
        ("URI=spiffe://a/b", "spiffe://a/b"),
        ("uri=spiffe://a/b", "spiffe://a/b"),
        ("URI=https://a;URI=https://b;DNS=c.example", "https://a"),
        # What a `;` in a name of the certificate would make of it.
        ("URI=spiffe://a/b;URI=spiffe://a/admin", None),
        ("URI=;DNS=c.example;URI=spiffe://a/admin", None),
        ("DNS=c.example;URI=spiffe://a/admin", None),
        # As Envoy 1.40 writes them.
        (f'Hash={HASH};Subject="CN=web";URI=spiffe://a/b;DNS=c.example', "spiffe://a/b"),
        (
            f'Hash={HASH};Subject="CN=he said \\"hi\\"\\; a=b,O=Acme\\, Inc";URI=',
            'he said "hi"; a=b',
        ),
        (f'Hash={HASH};Subject="CN=tail\\\\,O=x";URI=', "tail\\"),
        (f'Hash={HASH};Subject="CN=Lu\\C4\\8Di\\C4\\87";URI=', "Lučić"),
        (f'Hash={HASH};Subject="";URI=;DNS=d.example', "d.example"),
        ("DNS=a.example;DNS=b.example", "a.example"),
        ("URI=https://b;DNS=a.example", "https://b"),
        ('Subject="CN=web,O=acme";DNS=a.example', "a.example"),
        ('Subject="CN=web,O=acme"', "web"),
        ('Subject="O=acme,CN=web"', "web"),
        ('Subject="O=acme\\,CN=fake,CN=web"', "web"),
        ('Subject="CN=a\\\\"b\\\\"c"', 'a"b"c'),
        ('Subject=""', None),
        ('Subject="/C=US/CN=web"', None),
        (f'By=x;Hash={HASH.upper()};Subject=""', f"hash:{HASH}"),
        ("By=x;Hash=abc", None),
        ('URI="spiffe://a/b;c,d=e"', "spiffe://a/b;c,d=e"),
        (" URI = spiffe://a/b ; DNS=c ", "spiffe://a/b"),
        ("URI=spiffe://a/b;", "spiffe://a/b"),
        ("URI=spiffe://a/b,", None),
        ("URI=", None),
        ("", None),
        (",", None),
        # What came with the request stands before, whatever it says.
        ('Subject="CN=\\"URI=spiffe://evil", URI=spiffe://good', "spiffe://good"),
        ('URI="spiffe://evil,URI=spiffe://good', None),
        ("nonsense, URI=spiffe://good", None),
        ("What=1;URI=spiffe://good", None),
        ('URI="a"b', None),
        ('URI=a"b', None),
        ("=spiffe://a", None),
        (f"URI=spiffe://{'a' * 512}", None),
        ('Subject="CN=\\C3\\A9"', "é"),
        ('Subject="CN=\\FF"', None),
        ("URI=spiffe://a/\udcff", None),
    ],
)
def test_the_last_element_names_the_certificate(header: str, name: str | None) -> None:
    assert forwarded_name(header) == name


def test_a_header_beyond_any_and_one_of_pairs_without_end_are_not_read() -> None:
    assert forwarded_name("URI=a," + " " * TEXT_MAX + "URI=b") is None
    assert forwarded_name("DNS=a;" * 64) == "a"
    assert forwarded_name("DNS=a;" * 65) is None
    assert forwarded_name("DNS=a;" * 40 + "," + "DNS=b;" * 40) == "b"


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        ("CN=web", "web"),
        ("cn = web ,O=x", "web"),
        ("O=x+CN=web", "web"),
        ("CN=first,CN=second", "second"),
        ("CN=a\\,b", "a,b"),
        ("CN=a\\+b\\\\", "a+b\\"),
        ("CN=Lu\\C4\\8Di\\C4\\87", "Lučić"),
        ("CN=#04024869", ""),
        ("2.5.4.3=web", "web"),
        ("CN", ""),
        ("CN=", ""),
        ("CN=x\\", "x"),
        ("O=CN=web", ""),
        ("", ""),
    ],
)
def test_the_common_name_of_a_subject(subject: str, name: str) -> None:
    assert common_name(subject) == name


VALUES = st.text(st.characters(codec="latin-1", exclude_characters='"\\'), max_size=12)
PAIRS = st.lists(
    st.tuples(st.sampled_from(["By", "Hash", "Cert", "Chain", "Subject", "URI", "DNS"]), VALUES),
    max_size=5,
)


def written(pairs: list[tuple[str, str]]) -> str:
    return ";".join(f'{name}="{value}"' for name, value in pairs)


@settings(max_examples=example_count(200))
@given(st.lists(PAIRS, min_size=1, max_size=4))
def test_what_is_written_as_it_should_be_is_read_and_only_the_last_counts(
    elements: list[list[tuple[str, str]]],
) -> None:
    found = last_element(",".join(map(written, elements)))
    assert found is not None
    expected: dict[str, list[str]] = {}
    for name, value in elements[-1]:
        expected.setdefault(name.lower(), []).append(value)
    assert found == expected


@settings(max_examples=example_count(200))
@given(st.text(max_size=80), PAIRS.filter(bool))
def test_what_stands_before_never_changes_what_the_last_proxy_said(
    before: str, pairs: list[tuple[str, str]]
) -> None:
    """Garbage of a client's before it makes the header unread, or changes nothing."""
    alone = last_element(written(pairs))
    found = last_element(f"{before},{written(pairs)}")
    assert found in (None, alone)


@settings(max_examples=example_count(300))
@given(st.text(st.sampled_from('=;," \\aURIDNSCS'), max_size=60), st.integers(0, 60))
def test_garbage_and_cut_headers_give_a_name_or_none(text: str, cut: int) -> None:
    for header in (text, text[:cut], TWO[:cut] + text, TWO[cut:]):
        name = forwarded_name(header)
        assert name is None or 0 < len(name) <= 512
        assert isinstance(common_name(header), str)


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=20).map(str.strip).filter(bool))
def test_an_escaped_common_name_is_read_as_it_was(name: str) -> None:
    escaped = re.sub(r'([,+";\\<>=#])', r"\\\1", name)
    assert common_name(f"O=x\\,CN=evil,CN={escaped},OU=y") == name
