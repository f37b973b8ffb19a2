"""Signatures of AWS: a published example, a signer of the definition, and everything that may be wrong."""

import hashlib
import hmac
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_chaos.vendor.access.sigv4 import (
    Claim,
    SignedRequest,
    canonical_request,
    claim_of,
    objection,
    signature_of,
)
from smg_node.providers.sigv4 import RequestToSign, SigV4Signer

NOW_S = 1_790_000_000.0
STAMP = datetime.fromtimestamp(NOW_S, UTC).strftime("%Y%m%dT%H%M%SZ")
SIGNED = ("content-type", "host", "x-amz-date")


def request(**changes: Any) -> SignedRequest:
    headers = {"content-type": "application/json", "host": "h", "x-amz-date": STAMP}
    fields: dict[str, Any] = {
        "method": "POST",
        "raw_path": "/model/a%3A0/converse",
        "raw_query": "",
        "headers": headers,
        "body": b"{}",
    }
    return SignedRequest(**{**fields, **changes})


def claim(asked: SignedRequest, **changes: Any) -> Claim:
    made = Claim("AKID", STAMP[:8], "eu-central-1", "bedrock", SIGNED, "")
    made = made._replace(**changes)
    return made._replace(signature=signature_of(asked, made, "secret"))


def test_the_published_example_has_its_signature() -> None:
    # The example of the IAM user guide: ListUsers on 30 August 2015.
    headers = {
        "content-type": "application/x-www-form-urlencoded; charset=utf-8",
        "host": "iam.amazonaws.com",
        "x-amz-date": "20150830T123600Z",
    }
    example = SignedRequest("GET", "/", "Action=ListUsers&Version=2010-05-08", headers, b"")
    text = canonical_request(example, SIGNED)
    assert hashlib.sha256(text.encode()).hexdigest() == (
        "f536975d06c0309214f805bb90ccff089219ecd68b2577efef23edd43b7e1a59"
    )
    made = Claim("AKIDEXAMPLE", "20150830", "us-east-1", "iam", SIGNED, "")
    secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
    assert signature_of(example, made, secret) == (
        "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
    )


def test_a_path_is_encoded_once_more() -> None:
    assert canonical_request(request(), SIGNED).splitlines()[1] == "/model/a%253A0/converse"


def test_a_right_signature_holds() -> None:
    assert objection(request(), claim(request()), "secret", "bedrock", NOW_S) == ""


WRONG: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"body": b"{ }"}, {}, "does not match"),
    ({"raw_path": "/model/b/converse"}, {}, "does not match"),
    ({"raw_query": "a=1"}, {}, "does not match"),
    ({"method": "PUT"}, {}, "does not match"),
    ({}, {"service": "s3"}, "correct service: 'bedrock'"),
    ({}, {"signed": ("host",)}, "'x-amz-date' must be a 'SignedHeader'"),
    ({}, {"day": "20200101"}, "Date in Credential scope"),
]


@pytest.mark.parametrize(("changed", "claimed", "words"), WRONG)
def test_a_wrong_one_is_told_why(
    changed: dict[str, Any], claimed: dict[str, Any], words: str
) -> None:
    made = claim(request(), **claimed)
    assert words in objection(request(**changed), made, "secret", "bedrock", NOW_S)


@pytest.mark.parametrize(
    ("late_s", "good"), [(300, True), (-300, True), (301, False), (-301, False)]
)
def test_it_lives_for_five_minutes(late_s: float, *, good: bool) -> None:
    told = objection(request(), claim(request()), "secret", "bedrock", NOW_S + late_s)
    assert (told == "") == good


def test_another_secret_is_wrong() -> None:
    assert objection(request(), claim(request()), "Secret", "bedrock", NOW_S) != ""


def test_an_authorization_is_read() -> None:
    header = (
        "AWS4-HMAC-SHA256 Credential=AKID/20260921/eu-central-1/bedrock/aws4_request, "
        f"SignedHeaders=content-type;host;x-amz-date, Signature={'0' * 64}"
    )
    assert claim_of(header) == Claim(
        "AKID", "20260921", "eu-central-1", "bedrock", SIGNED, "0" * 64
    )


@given(st.text(max_size=100))
def test_garbage_is_no_claim(text: str) -> None:
    assert claim_of(text) is None


@given(st.text("abcdefgh %/:@=&+~", max_size=30), st.binary(max_size=30))
def test_any_path_and_body_are_signed_as_they_are(path: str, body: bytes) -> None:
    asked = request(raw_path="/" + path, body=body)
    made = claim(asked)
    assert objection(asked, made, "secret", "bedrock", NOW_S) == ""
    key = b"AWS4secret"
    canonical = hashlib.sha256(canonical_request(asked, SIGNED).encode()).hexdigest()
    scope = f"{STAMP[:8]}/eu-central-1/bedrock/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{STAMP}\n{scope}\n{canonical}"
    for part in (*scope.split("/"), text):
        key = hmac.new(key, part.encode(), "sha256").digest()
    assert made.signature == key.hex()


class Keys:
    access_key_id = "AKID"
    secret_access_key = "secret"
    session_token = "session"


@given(
    st.text("abc:/-_.~%3A@", max_size=20),
    st.lists(st.tuples(st.text("ab-_.~", min_size=1), st.text("ab12", max_size=3)), max_size=3),
    st.binary(max_size=20),
)
def test_what_the_node_signs_is_let_in(
    path: str, query: list[tuple[str, str]], body: bytes
) -> None:
    text = "&".join(f"{key}={value}" for key, value in query)
    asked = {"content-type": "application/json", "user-agent": "smg"}
    made = RequestToSign("POST", "host:1", f"/model/{path}", text, asked, body)
    added = SigV4Signer("bedrock", "eu-central-1").headers(made, Keys(), now_s=NOW_S)
    came = {"host": "host:1", **asked, **added}
    got = SignedRequest("POST", f"/model/{path}", text, came, body)
    told = claim_of(added["authorization"])
    assert told is not None
    assert "x-amz-security-token" in told.signed
    assert objection(got, told, "secret", "bedrock", NOW_S) == ""
