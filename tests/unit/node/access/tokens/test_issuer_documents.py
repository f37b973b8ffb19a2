"""Documents of issuers: bounded, of the right issuer, and shared without anything private or needless."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.access.tokens.issuer_documents import (
    DISCOVERY_BYTES_MAX,
    SHARED_BYTES_MAX,
    DocumentError,
    discovery_url,
    max_age_ms,
    read_discovery,
    shared_keys,
    url_trouble,
)

ISSUER = "https://sso.example/realms/prod"
KEYS = "https://sso.example/realms/prod/certs"


def discovery(**fields: Any) -> bytes:
    return json.dumps({"issuer": ISSUER, "jwks_uri": KEYS, **fields}).encode()


def test_the_discovery_document_is_below_the_issuer_with_or_without_its_slash() -> None:
    assert discovery_url("https://a/b") == "https://a/b/.well-known/openid-configuration"
    assert discovery_url("https://a/b/") == "https://a/b/.well-known/openid-configuration"


def test_it_says_where_the_keys_are_also_on_another_host() -> None:
    assert read_discovery(discovery(), ISSUER) == KEYS
    other = "https://10.0.0.1:6443/openid/v1/jwks"
    assert read_discovery(discovery(jwks_uri=other), ISSUER) == other


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (discovery(issuer=ISSUER + "/"), "is of 'https://sso.example/realms/prod/'"),
        (discovery(issuer=7), "is of no issuer"),
        (discovery(jwks_uri=""), "no jwks_uri"),
        (discovery(jwks_uri=["x"]), "no jwks_uri"),
        (discovery(jwks_uri="http://sso.example/keys"), "http is for this machine only"),
        (discovery(jwks_uri="file:///etc/passwd"), "is no URL of a host"),
        (discovery(jwks_uri="https://user:pw@sso.example/"), "is no URL of a host"),
        (b"[]", "no JSON object"),
        (b"\xff", "no JSON object"),
        (b"[" * 5_000, "no JSON object"),
        (b" " * (DISCOVERY_BYTES_MAX + 1), "more than 65,536 bytes"),
    ],
)
def test_what_is_not_the_document_of_this_issuer_is_refused(body: bytes, why: str) -> None:
    with pytest.raises(DocumentError, match=why):
        read_discovery(body, ISSUER)


@pytest.mark.parametrize(
    ("url", "good"),
    [
        ("https://sso.example", True),
        ("https://10.1.2.3:8443/x?y=z", True),
        ("http://127.0.0.1:8080/", True),
        ("http://[::1]:8080/", True),
        ("http://localhost/", True),
        ("http://idp.localhost:1/", True),
        ("http://10.0.0.1/", False),
        ("http://localhost.example/", False),
        ("http://127.0.0.1.example/", False),
        ("ftp://localhost/", False),
        ("https://", False),
        ("https://a b/", False),
        ("https://a\n/", False),
        ("https://a:99999/", False),
        ("https://ex\u00e4mple/", False),
        ("https://a/#b", False),
        ("https://a/" + "x" * 3_000, False),
    ],
)
def test_issuers_are_asked_by_https_or_on_this_machine(url: str, *, good: bool) -> None:
    assert (url_trouble(url) is None) is good


def test_a_shared_set_has_no_certificates_and_nothing_private_but_shows_that_it_was_there() -> None:
    shared = shared_keys(
        json.dumps(
            {
                "keys": [
                    {"kty": "RSA", "kid": "a", "n": "xx", "e": "AQAB", "x5c": ["MII"], "x5t": "q"},
                    {"kty": "RSA", "kid": "b", "n": "yy", "e": "AQAB", "d": "SECRET", "p": "PRIME"},
                    {"kty": "oct", "k": "SHARED"},
                    {"kty": "EC", "use": 7, "key_ops": "verify", "alg": None, "x": {}},
                    "nonsense",
                ],
                "more": "ignored",
            }
        ).encode()
    )
    assert json.loads(shared) == {
        "keys": [
            {"kty": "RSA", "kid": "a", "n": "xx", "e": "AQAB"},
            {"kty": "RSA", "kid": "b", "n": "yy", "e": "AQAB", "d": "", "p": ""},
            {"kty": "oct", "k": ""},
            {"kty": "EC", "use": "", "key_ops": "verify", "alg": "", "x": ""},
            None,
        ]
    }
    for secret in (b"SECRET", b"PRIME", b"SHARED", b"MII"):
        assert secret not in shared


def test_the_same_keys_are_shared_as_the_same_bytes() -> None:
    one = b'{"keys":[{"kid":"a","kty":"RSA"}]}'
    other = b'{ "x": 1, "keys" : [ {"kty":"RSA", "kid":"a", "x5c":[]} ] }'
    assert shared_keys(one) == shared_keys(other)


@pytest.mark.parametrize("body", [b"{}", b'{"keys":{}}', b"null", b"\xff", b"{", b'{"keys":1}'])
def test_what_is_no_set_is_refused(body: bytes) -> None:
    with pytest.raises(DocumentError, match=r"no list of keys|no JSON object"):
        shared_keys(body)


def test_more_keys_than_are_shared_are_refused() -> None:
    many = json.dumps({"keys": [{"kty": "RSA", "n": "x" * 1_000}] * 66}).encode()
    assert len(many) > SHARED_BYTES_MAX
    with pytest.raises(DocumentError, match="at most 65,536 are taken"):
        shared_keys(many)


@given(
    st.recursive(
        st.none() | st.text() | st.integers(), lambda s: st.lists(s) | st.dictionaries(st.text(), s)
    )
)
def test_whatever_json_there_is_is_shared_or_refused(value: Any) -> None:
    try:
        found = shared_keys(json.dumps(value).encode())
    except DocumentError:
        return
    assert isinstance(json.loads(found)["keys"], list)


@given(st.binary(max_size=300))
def test_garbage_is_refused(body: bytes) -> None:
    for read in (shared_keys, lambda one: read_discovery(one, ISSUER)):
        try:
            read(body)
        except DocumentError as error:
            assert "\n" not in str(error)  # noqa: PT017  # it is a line of a log


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("max-age=3600", 3_600_000),
        ("public, MAX-AGE = 60 , must-revalidate", 60_000),
        ('max-age="7"', 7_000),
        ("s-maxage=9", -1),
        ("no-store", 0),
        ("private, no-cache, max-age=900", 0),
        ("", -1),
        ("max-age=x", -1),
    ],
)
def test_how_long_keys_may_be_kept(header: str, expected: int) -> None:
    assert max_age_ms({"cache-control": header} if header else {}) == expected
