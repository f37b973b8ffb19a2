"""Signatures of AWS: equal to botocore's, byte for byte, over whatever a request may be."""

import datetime
from random import Random
from typing import Any
from urllib.parse import quote

import botocore.auth
import msgspec
import pytest
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from smg_node.providers.sigv4 import RequestToSign, SigV4Signer

NOW_S = 1_790_000_000.0
SERVICES = ("bedrock", "bedrock-mantle", "aws-external-anthropic")
MODELS = (
    "eu.anthropic.claude-sonnet-5-v1:0",
    "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/ab12",
    "global.amazon.nova-2-lite-v1:0",
    "who@where/what+of~it%41 é",
    "m",
)


class Keys(msgspec.Struct, frozen=True):
    access_key_id: str
    secret_access_key: str
    session_token: str = ""


KEYS = Keys("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")


@pytest.fixture
def theirs(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what botocore adds to a request at a given time."""

    def sign(request: RequestToSign, keys: Keys, service: str, region: str, now_s: float) -> Any:
        at = datetime.datetime.fromtimestamp(now_s, datetime.UTC)
        monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda: at)
        query = f"?{request.query}" if request.query else ""
        url = f"https://{request.host}{request.path}{query}"
        asked = AWSRequest(request.method, url, dict(request.headers), request.body)
        credentials = Credentials(*msgspec.structs.astuple(keys))
        botocore.auth.SigV4Auth(credentials, service, region).add_auth(asked)
        before = {name.lower() for name in request.headers}
        added = {name.lower(): value for name, value in asked.headers.items()}
        return {name: value for name, value in added.items() if name not in before}

    return sign


def drawn(rng: Random) -> RequestToSign:
    model = quote(rng.choice(MODELS), safe="")
    path = rng.choice(
        (
            f"/model/{model}/converse-stream",
            f"/model/{model}/invoke",
            "/anthropic/v1/messages",
            "/openai/v1//responses",
            "/a/./b/../c/",
            "/a/.",
            "/..",
            "",
            "/",
        )
    )
    query = rng.choice(("", "a=1", "b=2&a=1&a=0", "a", "a=&b", "x=%3A&y=a=b", "&a=1"))
    headers = {"Content-Type": "application/json", "x-other": rng.choice(("a", "  a \t b  ", "é"))}
    headers |= rng.choice(({}, {"User-Agent": "x"}, {"Traceparent": "00-x"}, {"Accept": "*/*"}))
    headers |= rng.choice(({}, {"anthropic-workspace-id": "wrkspc_1"}))
    host = rng.choice(("bedrock-runtime.eu-west-1.amazonaws.com", "127.0.0.1:8080"))
    body = rng.randbytes(rng.choice((0, 1, 200)))
    return RequestToSign(rng.choice(("POST", "get")), host, path, query, headers, body)


def test_five_hundred_requests_are_signed_as_botocore_signs_them(theirs: Any) -> None:
    rng, signers = Random(7), dict[tuple[str, str], SigV4Signer]()
    for _ in range(500):
        request, service = drawn(rng), rng.choice(SERVICES)
        region, token = rng.choice(("eu-west-1", "us-gov-east-1")), rng.choice(("", "tok/en=="))
        keys = Keys(rng.choice(("AKIA1", "ASIA2")), rng.choice(("secret", "s/e+c")), token)
        now_s = NOW_S + rng.randrange(400_000)
        signer = signers.setdefault((service, region), SigV4Signer(service, region))
        added = signer.headers(request, keys, now_s=now_s)
        assert added == theirs(request, keys, service, region, now_s)


def test_the_published_example_has_its_published_signature() -> None:
    request = RequestToSign("GET", "example.amazonaws.com", "/")
    now_s = datetime.datetime(2015, 8, 30, 12, 36, tzinfo=datetime.UTC).timestamp()
    assert SigV4Signer("service", "us-east-1").headers(request, KEYS, now_s=now_s) == {
        "x-amz-date": "20150830T123600Z",
        "authorization": "AWS4-HMAC-SHA256 "
        "Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
        "SignedHeaders=host;x-amz-date, "
        "Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
    }


def test_a_model_in_a_path_is_encoded_once_more_than_it_is_sent(theirs: Any) -> None:
    once = RequestToSign("POST", "h", "/model/a%3A0/converse", "", {}, b"{}")
    twice = RequestToSign("POST", "h", "/model/a:0/converse", "", {}, b"{}")
    signer = SigV4Signer("bedrock", "r")
    signed = [signer.headers(one, KEYS, now_s=NOW_S)["authorization"] for one in (once, twice)]
    assert signed[0] != signed[1]
    assert signed[0] == theirs(once, KEYS, "bedrock", "r", NOW_S)["authorization"]


def test_keys_of_many_days_and_accounts_do_not_pile_up() -> None:
    signer, request = SigV4Signer("bedrock", "r"), RequestToSign("POST", "h", "/")
    first = signer.headers(request, KEYS, now_s=NOW_S)
    for day in range(200):
        signer.headers(request, KEYS, now_s=NOW_S + day * 86_400)
        assert len(signer._keys) <= 64
    assert signer.headers(request, KEYS, now_s=NOW_S) == first


def test_headers_that_are_signed_anew_are_not_signed_as_they_came() -> None:
    signer = SigV4Signer("bedrock", "r")
    plain = RequestToSign("POST", "h", "/")
    again = RequestToSign("POST", "h", "/", "", {"Authorization": "x", "X-Amz-Date": "y"})
    assert signer.headers(again, KEYS, now_s=NOW_S) == signer.headers(plain, KEYS, now_s=NOW_S)
