"""Which URLs are asked for media, by mode, host, port and what they look like."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.media.fetch.fetch_rules import FetchMode, FetchRules

WHERE = "messages[0].content[1].image_url"


def rules(
    mode: FetchMode = "public", hosts: tuple[str, ...] = (), private: tuple[str, ...] = ()
) -> FetchRules:
    return FetchRules(mode, hosts, private)


def refused(ours: FetchRules, url: str) -> str:
    with pytest.raises(SmgError) as raised:
        ours.checked(url, WHERE)
    assert (raised.value.where, raised.value.code) == (WHERE, "media_forbidden")
    return raised.value.message


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("https://e.com/a.png", "https://e.com/a.png"),
        ("http://e.com:80/%7Ea%2Fb?X-Sig=%2F%3D", "http://e.com/%7Ea%2Fb?X-Sig=%2F%3D"),
        ("http://e.com:443/", "http://e.com:443/"),
        ("https://bücher.de/ä", "https://xn--bcher-kva.de/%C3%A4"),
        ("http://93.184.216.34/a", "http://93.184.216.34/a"),
        ("http://[2606:4700::1111]/a", "http://[2606:4700::1111]/a"),
        ("https://e.com./a#part", "https://e.com./a"),
        ("http://3com.example/", "http://3com.example/"),
    ],
)
def test_public_urls_are_asked_as_they_are(url: str, asked: str) -> None:
    assert str(rules().checked(url, WHERE)) == asked


LOOPBACK = [
    "http://127.0.0.1/", "http://127.1/", "http://0/", "http://2130706433/", "http://0x7f000001/",
    "http://0x7f.0.0.1/", "http://0177.0.0.1/", "http://[::1]/", "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/", "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/", "http://１２７.0.0.1/",
    "http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/", "http://0.0.0.0/", "http://127.0.0.1./",
    "http://①②⑦.0.0.1/", "http://[::]/", "http://127.0.0.1%00/",
]  # fmt: skip
PRIVATE = [
    "http://10.0.0.1/", "http://192.168.1.1/", "http://169.254.169.254/latest", "http://[fe80::1]/",
    "http://[fe80::1%25eth0]/", "http://[fd00::1]/", "http://224.0.0.1/", "http://100.64.0.1/",
]  # fmt: skip


@pytest.mark.parametrize("url", LOOPBACK + PRIVATE)
def test_no_spelling_of_a_private_address_is_asked(url: str) -> None:
    assert refused(rules(), url) in (
        "its host is not on the public network",
        "its URL names no host",
    )


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://e.com/a", "only http and https"),
        ("file:///etc/passwd", "only http and https"),
        ("http://", "names no host"),
        ("http:///x", "names no host"),
        ("http://.e.com/", "names no host"),
        ("http://e!com/", "names no host"),
        ("http://user@e.com/", "user or a password"),
        ("http://:secret@e.com/", "user or a password"),
        ("http://a\\@b/", "a character that no URL has"),
        ("http://e.com/a b", "a character that no URL has"),
        ("http://e.com/\r\nHost: x", "a character that no URL has"),
        ("http://e.com:x/", "cannot be read"),
        ("http://e.com:99999/", "cannot be read"),
        ("http://[::1/", "cannot be read"),
        ("http://e.com:0/", "port 0 is not fetched from"),
        ("http://e.com:22/", "port 22 is not fetched from"),
        ("https://e.com:8443/", "port 8443 is not fetched from"),
    ],
)
def test_odd_urls_are_not_asked(url: str, words: str) -> None:
    message = refused(rules(), url)
    assert words in message
    assert "secret" not in message


def test_a_node_may_fetch_nothing() -> None:
    assert "media.fetch" in refused(rules("none", private=("e.com",)), "https://e.com/")


def test_a_node_may_fetch_from_some_hosts_only() -> None:
    ours = rules("hosts", ("pics.example", "*.cdn.example"), ("pics.corp",))
    for url in ("https://pics.example/", "https://a.cdn.example/", "http://PICS.corp/"):
        ours.checked(url, WHERE)
    for url in ("https://e.com/", "https://cdn.example/", "https://x-pics.example/"):
        assert "none of those" in refused(ours, url)
    assert not ours.allows("pics.example", 443, "10.0.0.1")
    assert ours.allows("pics.corp", 80, "10.0.0.1")


def test_ports_are_open_where_an_entry_names_them() -> None:
    ours = rules(hosts=("pics.example:8443",), private=("pics.corp:8080", "open.corp"))
    ours.checked("https://pics.example:8443/", WHERE)
    ours.checked("http://pics.corp:8080/", WHERE)
    for url in ("https://pics.example:8080/", "http://open.corp:8080/", "http://e.com:8443/"):
        assert "is not fetched from" in refused(ours, url)


def test_private_addresses_are_for_listed_hosts_and_networks() -> None:
    ours = rules(private=("pics.corp", "10.9.0.0/16"))
    assert ours.allows("pics.corp", 80, "127.0.0.1")
    assert ours.allows("e.com", 80, "10.9.1.1")
    assert not ours.allows("e.com", 80, "10.8.1.1")
    ours.checked("http://10.9.1.1/", WHERE)
    refused(ours, "http://10.8.1.1/")


def test_redirects_are_checked_anew() -> None:
    ours = rules()
    start = ours.checked("https://e.com/a/b?c", WHERE)
    assert str(ours.redirected(start, "/x?y=%2F", WHERE)) == "https://e.com/x?y=%2F"
    assert str(ours.redirected(start, "https://f.com/", WHERE)) == "https://f.com/"
    for location, words in (
        ("http://e.com/", "from https to http"),
        ("//127.0.0.1/", "not on the public network"),
        ("https://user@e.com/", "user or a password"),
        ("ftp://e.com/", "only http"),
        ("", "to no URL"),
        ("https://e.com:x/", "to no URL"),
        ("https://e.com/a b", "to no URL"),
    ):
        with pytest.raises(SmgError, match=words) as raised:
            ours.redirected(start, location, WHERE)
        assert (raised.value.where, raised.value.code) == (WHERE, "media_forbidden")


_URLISH = st.text(
    alphabet=st.sampled_from("htps:/@[]%.0123456789abcdefx?#\\ é①-_\n") | st.characters(),
    max_size=40,
)


@given(url=_URLISH, location=_URLISH)
def test_any_text_is_a_public_url_or_refused_at_its_path(url: str, location: str) -> None:
    ours = rules()
    found = refusal = None
    try:
        found = ours.checked(f"http://{url}", WHERE)
        found = ours.redirected(found, location, WHERE)
    except SmgError as error:
        refusal = error
    if refusal is not None:
        assert (refusal.where, refusal.code) == (WHERE, "media_forbidden")
    else:
        assert found is not None
        assert found.scheme in ("http", "https")
        assert found.raw_host
