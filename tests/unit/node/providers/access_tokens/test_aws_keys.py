from typing import Any, Final

import pytest

from smg_node.core.errors import SmgError
from smg_node.providers.access_tokens.aws_keys import AwsMaker
from smg_node.providers.access_tokens.made_token import AwsKeys, MadeToken
from smg_node.providers.parsing.spec_parser import parse_provider
from support.providers.token_endpoints import FakeEndpoints, FakeSources

NOW: Final = 1_700_000_000.0
ENDS: Final = "2023-11-14T23:13:20Z"
STS: Final = "https://sts.eu-west-1.amazonaws.com/"
METADATA: Final = "http://169.254.169.254/latest"
ROLES: Final = f"{METADATA}/meta-data/iam/security-credentials/"
SESSION: Final = MadeToken(AwsKeys("ASIA1", "s&1", "t/1=="), NOW, NOW + 3_600)
JSON: Final = {
    "Code": "Success",
    "AccessKeyId": "ASIA1",
    "SecretAccessKey": "s&1",
    "Token": "t/1==",
    "Expiration": ENDS,
}
XML: Final = f"""<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <AssumeRoleWithWebIdentityResult>
    <AssumedRoleUser><Arn>arn:aws:sts::1:assumed-role/r/s</Arn></AssumedRoleUser>
    <Credentials>
      <AccessKeyId>ASIA1</AccessKeyId>
      <SecretAccessKey>s&amp;1</SecretAccessKey>
      <SessionToken>t/1==</SessionToken>
      <Expiration>{ENDS}</Expiration>
    </Credentials>
  </AssumeRoleWithWebIdentityResult>
</AssumeRoleWithWebIdentityResponse>""".encode()


def maker(
    endpoints: FakeEndpoints, sources: FakeSources, region: str = "eu-west-1", **said: Any
) -> AwsMaker:
    told = {"kind": "bedrock", "region": region, "credentials": {"kind": "aws", **said}}
    parsed = parse_provider("a", told)
    return AwsMaker(parsed.spec, parsed.secrets, endpoints, sources)


async def test_keys_that_are_given_hold_until_they_are_replaced() -> None:
    sources = FakeSources(env={"SECRET": "s"})
    made = await maker(
        FakeEndpoints({}), sources, access_key_id="AKIA", secret_access_key="env:SECRET"
    ).make(NOW)
    assert made == MadeToken(AwsKeys("AKIA", "s"), NOW, None)


async def test_keys_of_the_environment_come_before_all_but_given_ones() -> None:
    env = {
        "AWS_ACCESS_KEY_ID": "AKIA",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_SESSION_TOKEN": "t",
        "AWS_WEB_IDENTITY_TOKEN_FILE": "/token",
    }
    made = await maker(FakeEndpoints({}), FakeSources(env=env)).make(NOW)
    assert made == MadeToken(AwsKeys("AKIA", "s", "t"), NOW, None)


@pytest.mark.parametrize(
    ("said", "env", "name"),
    [
        ({"role_arn": "arn:r", "token_file": "/token"}, {}, "smg-node"),
        (
            {},
            {
                "AWS_WEB_IDENTITY_TOKEN_FILE": "/token",
                "AWS_ROLE_ARN": "arn:r",
                "AWS_ROLE_SESSION_NAME": "pod-1",
            },
            "pod-1",
        ),
        ({"role_arn": "arn:r", "token_file": "/token", "session_name": "own"}, {}, "own"),
    ],
)
async def test_a_web_identity_takes_on_a_role(
    said: dict[str, str], env: dict[str, str], name: str
) -> None:
    endpoints = FakeEndpoints({STS: XML})
    made = await maker(endpoints, FakeSources({"/token": "jwt\n"}, env), **said).make(NOW)
    assert made == SESSION
    assert [(asked.method, asked.form) for asked in endpoints.asked] == [
        (
            "POST",
            {
                "Action": "AssumeRoleWithWebIdentity",
                "Version": "2011-06-15",
                "RoleArn": "arn:r",
                "RoleSessionName": name,
                "WebIdentityToken": "jwt",
            },
        )
    ]


@pytest.mark.parametrize(
    ("env", "url", "authorization"),
    [
        (
            {
                "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/c",
                "AWS_CONTAINER_AUTHORIZATION_TOKEN": "tok",
            },
            "http://169.254.170.2/v2/c",
            "tok",
        ),
        (
            {
                "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.23/v1/c",
                "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "/token",
            },
            "http://169.254.170.23/v1/c",
            "jwt",
        ),
        (
            {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "https://keys.example/c"},
            "https://keys.example/c",
            None,
        ),
    ],
)
async def test_a_container_is_given_keys(
    env: dict[str, str], url: str, authorization: str | None
) -> None:
    endpoints = FakeEndpoints({url: JSON})
    assert await maker(endpoints, FakeSources({"/token": "jwt\n"}, env)).make(NOW) == SESSION
    assert endpoints.asked[0].headers.get("authorization") == authorization


async def test_a_container_is_not_asked_over_plain_http_from_afar() -> None:
    env = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://evil.example/c?x=secret"}
    with pytest.raises(SmgError, match=r"evil\.example/c is asked for keys only over https"):
        await maker(FakeEndpoints({}), FakeSources(env=env)).make(NOW)


async def test_a_machine_is_asked_with_a_token_of_its_own() -> None:
    answers = {f"{METADATA}/api/token": b"imds-1", ROLES: b"role-1\n", f"{ROLES}role-1": JSON}
    endpoints = FakeEndpoints(answers)
    assert await maker(endpoints, FakeSources()).make(NOW) == SESSION
    assert [(asked.method, asked.url, dict(asked.headers)) for asked in endpoints.asked] == [
        ("PUT", f"{METADATA}/api/token", {"x-aws-ec2-metadata-token-ttl-seconds": "21600"}),
        ("GET", ROLES, {"x-aws-ec2-metadata-token": "imds-1"}),
        ("GET", f"{ROLES}role-1", {"x-aws-ec2-metadata-token": "imds-1"}),
    ]


async def test_china_has_a_domain_of_its_own() -> None:
    endpoints = FakeEndpoints({"https://sts.cn-north-1.amazonaws.com.cn/": XML})
    said = {"role_arn": "arn:r", "token_file": "/token"}
    made = await maker(endpoints, FakeSources({"/token": "jwt"}), "cn-north-1", **said).make(NOW)
    assert made == SESSION


ERROR: Final = b"<ErrorResponse><Error><Code>ExpiredToken</Code></Error></ErrorResponse>"


@pytest.mark.parametrize(
    ("answers", "said", "why"),
    [
        ({}, {"source": "environment"}, "AWS_ACCESS_KEY_ID is not set"),
        ({}, {"source": "web_identity"}, "AWS_WEB_IDENTITY_TOKEN_FILE is not set"),
        ({}, {"source": "web_identity", "token_file": "/token"}, "AWS_ROLE_ARN is not set"),
        ({}, {"source": "web_identity", "token_file": "/gone", "role_arn": "r"}, "No such file"),
        (
            {STS: (400, ERROR)},
            {"token_file": "/token", "role_arn": "r"},
            "sts.eu-west-1.amazonaws.com/ answered 400",
        ),
        (
            {STS: b"<Credentials><AccessKeyId>A</AccessKeyId></Credentials>"},
            {"token_file": "/token", "role_arn": "r"},
            "answered without keys of a session",
        ),
        (
            {STS: TimeoutError()},
            {"token_file": "/token", "role_arn": "r"},
            "sts.eu-west-1.amazonaws.com/ did not answer in time",
        ),
        (
            {f"{METADATA}/api/token": OSError("unreachable")},
            {},
            "169.254.169.254/latest/api/token cannot be reached",
        ),
        ({f"{METADATA}/api/token": b"t", ROLES: b""}, {}, "knows no role of this machine"),
        ({f"{METADATA}/api/token": b"t", ROLES: b"../x"}, {}, "knows no role of this machine"),
        (
            {
                f"{METADATA}/api/token": b"t",
                ROLES: b"r",
                f"{ROLES}r": {"Code": "AssumeRoleUnauthorizedAccess"},
            },
            {},
            r"answered without keys of a session \(AssumeRoleUnauthorizedAccess\)",
        ),
        (
            {f"{METADATA}/api/token": b"t", ROLES: b"r", f"{ROLES}r": b"{half"},
            {},
            "answered no JSON object",
        ),
        (
            {f"{METADATA}/api/token": b"t", ROLES: b"r", f"{ROLES}r": {**JSON, "Expiration": "x"}},
            {},
            "answered without keys of a session",
        ),
    ],
)
async def test_what_is_missing_is_told(
    answers: dict[str, Any], said: dict[str, str], why: str
) -> None:
    sources = FakeSources({"/token": "secret-jwt"})
    with pytest.raises(SmgError, match=why) as caught:
        await maker(FakeEndpoints(answers), sources, **said).make(NOW)
    assert "secret-jwt" not in caught.value.message
