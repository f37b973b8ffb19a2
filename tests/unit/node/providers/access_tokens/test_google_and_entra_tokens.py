import base64
import json
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from smg_node.core.errors import SmgError
from smg_node.providers.access_tokens.entra_tokens import EntraMaker
from smg_node.providers.access_tokens.google_tokens import GoogleMaker
from smg_node.providers.access_tokens.made_token import MadeToken
from smg_node.providers.access_tokens.makers import token_maker
from smg_node.providers.parsing.spec_parser import parse_provider
from smg_node.providers.provider_call import BearerToken
from support.providers.token_endpoints import FakeEndpoints, FakeSources

NOW: Final = 1_700_000_000.5
GOOGLE: Final = "https://oauth2.googleapis.com/token"
ANSWER: Final = {"access_token": "t-1", "expires_in": 3_599, "token_type": "Bearer"}
MADE: Final = MadeToken(BearerToken("t-1"), NOW, NOW + 3_599)


def pem(key: Any) -> str:
    raw: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return raw.decode()


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65_537, 2_048)


def account(key: Any, **said: Any) -> str:
    return json.dumps(
        {
            "type": "service_account",
            "client_email": "svc@p.iam.gserviceaccount.com",
            "private_key_id": "kid-1",
            "private_key": pem(key),
            **said,
        }
    )


def google(endpoints: FakeEndpoints, sources: FakeSources, **said: Any) -> GoogleMaker:
    told = {"project": "p", "location": "eu", "credentials": {"kind": "gcp", **said}}
    parsed = parse_provider("a", {"kind": "vertex", **told})
    return GoogleMaker(parsed.spec, parsed.secrets, endpoints, sources)


def decoded(segment: str) -> bytes:
    return base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4))


async def test_a_service_account_signs_for_itself(key: rsa.RSAPrivateKey) -> None:
    endpoints = FakeEndpoints({GOOGLE: ANSWER})
    sources = FakeSources({"/sa.json": account(key)})
    assert await google(endpoints, sources, service_account="file:/sa.json").make(NOW) == MADE

    asked = endpoints.asked[0]
    assert (asked.method, asked.form["grant_type"]) == (
        "POST",
        "urn:ietf:params:oauth:grant-type:jwt-bearer",
    )
    head, claims, signature = asked.form["assertion"].split(".")
    assert json.loads(decoded(head)) == {"alg": "RS256", "typ": "JWT", "kid": "kid-1"}
    assert json.loads(decoded(claims)) == {
        "iss": "svc@p.iam.gserviceaccount.com",
        "scope": "https://www.googleapis.com/auth/cloud-platform",
        "aud": GOOGLE,
        "iat": 1_700_000_000,
        "exp": 1_700_003_600,
    }
    # Raises where the signature is not over these bytes.
    signed = f"{head}.{claims}".encode()
    key.public_key().verify(decoded(signature), signed, PKCS1v15(), SHA256())


async def test_the_file_of_the_environment_counts_where_nothing_is_given(
    key: rsa.RSAPrivateKey,
) -> None:
    endpoints = FakeEndpoints({"http://127.0.0.1:9/t": ANSWER})
    sources = FakeSources(
        {"/adc.json": account(key, token_uri="http://127.0.0.1:9/t")},
        {"GOOGLE_APPLICATION_CREDENTIALS": "/adc.json"},
    )
    assert await google(endpoints, sources, scope="s-1").make(NOW) == MADE
    claims = json.loads(decoded(endpoints.asked[0].form["assertion"].split(".")[1]))
    assert (claims["aud"], claims["scope"]) == ("http://127.0.0.1:9/t", "s-1")


@pytest.mark.parametrize("in_file", [True, False])
async def test_a_refresh_token_gives_a_token(in_file: bool) -> None:
    endpoints = FakeEndpoints({GOOGLE: ANSWER})
    user = {"client_id": "c", "client_secret": "s", "refresh_token": "r"}
    file = json.dumps({"type": "authorized_user", **user})
    said = {"service_account": "file:/adc.json"} if in_file else user
    assert await google(endpoints, FakeSources({"/adc.json": file}), **said).make(NOW) == MADE
    assert endpoints.asked[0].form == {"grant_type": "refresh_token", **user}


@pytest.mark.parametrize(
    ("said", "env", "host"),
    [
        ({}, {}, "metadata.google.internal"),
        (
            {"source": "instance"},
            {"GCE_METADATA_HOST": "127.0.0.1:8", "GOOGLE_APPLICATION_CREDENTIALS": "/x"},
            "127.0.0.1:8",
        ),
    ],
)
async def test_a_machine_is_asked_for_its_token(
    said: dict[str, str], env: dict[str, str], host: str
) -> None:
    url = f"http://{host}/computeMetadata/v1/instance/service-accounts/default/token"
    endpoints = FakeEndpoints({url: ANSWER})
    assert await google(endpoints, FakeSources(env=env), **said).make(NOW) == MADE
    assert endpoints.asked[0].headers == {"metadata-flavor": "Google"}


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("{half secret", "file is no JSON object"),
        ('{"type":"external_account"}', "a file of type 'external_account' is none"),
        ('{"type":"service_account"}', "file has no client_email"),
        (
            '{"type":"service_account","client_email":"a","private_key":"secret"}',
            "private_key is no PEM key",
        ),
        (
            '{"type":"service_account","token_uri":"http://evil.example/t"}',
            "token_uri is no https URL",
        ),
        ('{"type":"authorized_user","client_id":"c"}', "file has no client_secret"),
    ],
)
async def test_a_file_that_is_none_is_told_without_its_content(file: str, why: str) -> None:
    sources = FakeSources({"/sa.json": file})
    with pytest.raises(SmgError, match=why) as caught:
        await google(FakeEndpoints({}), sources, service_account="file:/sa.json").make(NOW)
    assert "secret" not in caught.value.message.replace("client_secret", "")


async def test_a_key_of_another_kind_cannot_sign() -> None:
    sources = FakeSources({"/sa.json": account(ec.generate_private_key(ec.SECP256R1()))})
    with pytest.raises(SmgError, match="private_key is no RSA key"):
        await google(FakeEndpoints({}), sources, service_account="file:/sa.json").make(NOW)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (
            (400, {"error": "invalid_grant", "error_description": "Invalid JWT Signature."}),
            r"oauth2.googleapis.com/token answered 400 \(invalid_grant: ",
        ),
        ((500, b"<html>"), "answered 500"),
        ({"id_token": "x"}, "answered without an access_token"),
        (b"[]", "answered no JSON object"),
    ],
)
async def test_an_endpoint_that_gives_none_is_told(
    key: rsa.RSAPrivateKey, answer: Any, why: str
) -> None:
    sources = FakeSources({"/sa.json": account(key)})
    endpoints = FakeEndpoints({GOOGLE: answer})
    with pytest.raises(SmgError, match=why) as caught:
        await google(endpoints, sources, service_account="file:/sa.json").make(NOW)
    assert caught.value.code == "provider_token"


def entra(endpoints: FakeEndpoints, sources: FakeSources, kind: str, **said: Any) -> EntraMaker:
    credentials = {"kind": "entra", "tenant": "t", "client_id": "c", **said}
    parsed = parse_provider("a", {"kind": kind, "resource": "acme", "credentials": credentials})
    return EntraMaker(parsed.spec, parsed.secrets, endpoints, sources)


COGNITIVE: Final = "https://cognitiveservices.azure.com/.default"


@pytest.mark.parametrize(
    ("kind", "said", "url", "form"),
    [
        (
            "azure",
            {"client_secret": "env:SECRET"},
            "https://login.microsoftonline.com/t/oauth2/v2.0/token",
            {"scope": COGNITIVE, "client_secret": "s"},
        ),
        (
            "foundry",
            {"client_secret": "env:SECRET"},
            "https://login.microsoftonline.com/t/oauth2/v2.0/token",
            {"scope": "https://ai.azure.com/.default", "client_secret": "s"},
        ),
        (
            "azure",
            {"token_file": "/token", "authority": "https://login.example/", "scope": "own"},
            "https://login.example/t/oauth2/v2.0/token",
            {
                "scope": "own",
                "client_assertion": "jwt",
                "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
            },
        ),
    ],
)
async def test_an_application_gets_a_token_of_the_directory(
    kind: str, said: dict[str, str], url: str, form: dict[str, str]
) -> None:
    endpoints = FakeEndpoints({url: ANSWER})
    sources = FakeSources({"/token": "jwt\n"}, {"SECRET": "s"})
    assert await entra(endpoints, sources, kind, **said).make(NOW) == MADE
    assert endpoints.asked[0].form == {
        "grant_type": "client_credentials",
        "client_id": "c",
        **form,
    }


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ({"kind": "openai", "keys": ["k"]}, "NoneType"),
        ({"kind": "azure", "resource": "a", "credentials": "none"}, "NoneType"),
        ({"kind": "bedrock", "region": "eu-west-1"}, "AwsMaker"),
        ({"kind": "vertex", "project": "p", "location": "eu"}, "GoogleMaker"),
        (
            {
                "kind": "azure",
                "resource": "a",
                "credentials": {
                    "kind": "entra",
                    "tenant": "t",
                    "client_id": "c",
                    "client_secret": "s",
                },
            },
            "EntraMaker",
        ),
    ],
)
def test_the_maker_is_that_of_the_credentials(said: dict[str, Any], name: str) -> None:
    parsed = parse_provider("a", said)
    found = token_maker(parsed.spec, parsed.secrets, FakeEndpoints({}), FakeSources())
    assert type(found).__name__ == name
