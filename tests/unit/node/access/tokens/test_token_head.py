"""Tokens are taken apart within limits, and whatever comes is a head or a named error."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.access.identity import AccessError
from smg_node.access.tokens.token_head import (
    JSON_MAX_BYTES,
    TokenHead,
    looks_signed,
    read_token,
    unverified_issuer,
)
from support.access.signed_tokens import ISSUER, claims, encoded, signing_key

KEY = signing_key("ES256")
# RFC 7515, appendix A.1 (a header with line breaks in it) and A.4; the signatures are for keys that are published there.
RFC_A1 = (
    "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9"
    ".eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
    ".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
)


def refused(token: str) -> AccessError:
    with pytest.raises(AccessError) as caught:
        read_token(token)
    error = caught.value
    assert error.status == 401
    assert error.code == "invalid_token"
    assert error.challenge == 'error="invalid_token", error_description="malformed"'
    return error


def of(header: object, payload: object) -> str:
    return KEY.signed(json.dumps(header).encode(), json.dumps(payload).encode())


def test_a_token_is_taken_apart() -> None:
    token = KEY.token(claims(), kid="k", jku="https://evil.example/keys", x5c=["AQAB"] * 100)
    head = read_token(token)
    assert (head.algorithm, head.kid, head.type, head.issuer) == ("ES256", "k", "JWT", ISSUER)
    assert head.claims == claims()
    assert head.signed + b"." + encoded(head.signature).encode() == token.encode()
    assert unverified_issuer(token) == ISSUER


def test_the_example_of_the_standard_is_read() -> None:
    head = read_token(RFC_A1)
    assert (head.algorithm, head.type, head.issuer, head.kid) == ("HS256", "JWT", "joe", "")
    assert head.claims["http://example.com/is_root"] is True
    assert len(head.signature) == 32


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("at+jwt", "at+jwt"),
        ("AT+JWT", "at+jwt"),
        ("application/at+jwt", "at+jwt"),
        ("Application/At+Jwt", "at+jwt"),
        ("jwt", "JWT"),
        ("application/JWT", "JWT"),
        ("logout+jwt", "logout+jwt"),
        ("none", "none"),
        (None, None),
    ],
)
def test_types_are_spelled_one_way(said: str | None, read: str | None) -> None:
    assert read_token(KEY.token(claims(), typ=said)).type == read


@pytest.mark.parametrize(
    "changed",
    [
        {"alg": None},
        {"alg": 7},
        {"alg": ""},
        {"alg": ["RS256"]},
        {"alg": "x" * 513},
        {"kid": 7},
        {"kid": ""},
        {"kid": "x" * 513},
        {"typ": 7},
        {"typ": ["JWT"]},
        {"zip": "DEF"},
        {"crit": ["exp"], "exp": 1},
        {"crit": []},
        {"b64": False, "crit": ["b64"]},
    ],
)
def test_headers_that_cannot_be_judged_are_refused(changed: dict[str, Any]) -> None:
    refused(KEY.token(claims(), **changed))


@pytest.mark.parametrize("said", [None, 7, "", [ISSUER], {"a": 1}, "x" * 513])
def test_a_token_says_who_made_it(said: object) -> None:
    refused(of({"alg": "ES256"}, {**claims(), "iss": said}))


@pytest.mark.parametrize("payload", [None, 7, "text", [], True])
def test_claims_are_an_object(payload: object) -> None:
    refused(of({"alg": "ES256"}, payload))


@pytest.mark.parametrize(
    "payload",
    [
        b'{"iss": "a", "exp": 1e400}',
        b'{"iss": "a", "exp": NaN}',
        b'{"iss": "a", "exp": Infinity}',
        b'{"iss": "\xff"}',
        b'{"iss": "\\ud800"}',
        b'{"iss": "a"} ',
        b'{"iss": "a"',
        b'{"a":' * 3000,
        b'{"iss":"a","x":' + b"[" * 6000 + b"]" * 6000 + b"}",
        b'{"iss":"a","exp":' + b"9" * 5000 + b"}",
    ],
)
def test_what_is_hardly_json_is_refused_or_read(payload: bytes) -> None:
    token = KEY.signed(b'{"alg":"ES256"}', payload)
    if payload.endswith(b"} "):
        assert read_token(token).issuer == "a"
    else:
        refused(token)


def test_claims_have_a_size() -> None:
    room = JSON_MAX_BYTES - len(json.dumps({"iss": ISSUER, "x": ""}))
    assert read_token(of({"alg": "ES256"}, {"iss": ISSUER, "x": "a" * room})).issuer == ISSUER
    assert "longer" in refused(of({"alg": "ES256"}, {"iss": ISSUER, "x": "a" * (room + 1)})).message
    assert "longer" in refused(of({"alg": "ES256", "x": "a" * JSON_MAX_BYTES}, claims())).message
    assert "too long" in refused(f"{KEY.token(claims())}{'A' * 1400}").message


def test_the_last_of_two_equal_claims_counts_everywhere() -> None:
    token = KEY.signed(b'{"alg":"ES256","alg":"RS256"}', b'{"iss":"a","iss":"b"}')
    head = read_token(token)
    assert (head.algorithm, head.issuer, dict(head.claims)) == ("RS256", "b", {"iss": "b"})


@pytest.mark.parametrize(
    "text",
    ["", "smg-a-b", "sk-proj-abc", "ey", "ey.ey", "ey.ey.ey.ey", "eyJ.eyJ.sig=", "eyJ.ey+.s", "eyJ.ey/.s", "eyJ. .x",
     "xeyJ.eyJ.sig", "eyJ.eyJ.sig\n", "éyJ.eyJ.sig", "eyJ.éyJ.sig", "Bearer eyJ.eyJ.sig", "..", "eyJ..sig"],
)  # fmt: skip
def test_other_credentials_do_not_look_signed(text: str) -> None:
    assert not looks_signed(text)
    refused(text)
    assert unverified_issuer(text) is None


@pytest.mark.parametrize("text", ["eyJ.eyJ.sig", "eyJ.eyJ.", "ey_.-.-"])
def test_three_parts_that_begin_as_an_object_look_signed(text: str) -> None:
    assert looks_signed(text)
    refused(text)


def test_each_part_has_one_spelling() -> None:
    token = KEY.token({**claims(), "x": "pad"})
    for place, part in enumerate(token.split(".")):
        parts = token.split(".")
        if len(part) % 4 == 0:
            continue
        # The last character has bits to spare; any other value of them is another spelling of the same bytes.
        alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
        parts[place] = part[:-1] + alphabet[alphabet.index(part[-1]) + 1]
        refused(".".join(parts))


@given(st.data())
def test_a_cut_token_is_refused_or_another_token(data: st.DataObject) -> None:
    token = KEY.token(claims())
    cut = data.draw(st.integers(0, len(token) - 1))
    try:
        head = read_token(token[:cut])
    except AccessError:
        return
    # Only the signature was cut: what it is over is untouched.
    assert head.signed == read_token(token).signed
    assert head.signature != read_token(token).signature


def read(token: str) -> TokenHead | None:
    """Return a head; None for a token that is refused as it should be."""
    try:
        return read_token(token)
    except AccessError as error:
        return None if error.code == "invalid_token" else pytest.fail(error.code)


@given(
    st.text(max_size=200)
    | st.from_regex(r"ey[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*", fullmatch=True)
)
def test_any_text_is_a_head_or_a_named_error(text: str) -> None:
    head = read(text)
    assert head is None or head.issuer


@given(st.binary(max_size=80), st.binary(max_size=80), st.binary(max_size=80))
def test_any_bytes_as_parts_are_a_head_or_a_named_error(
    one: bytes, two: bytes, three: bytes
) -> None:
    for header in (one, b'{"' + one):
        head = read(f"{encoded(header)}.{encoded(two)}.{encoded(three)}")
        assert head is None or head.signature == three
