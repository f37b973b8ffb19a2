"""Definitions and credentials: what is refused names its field, and no secret is printed."""

from typing import Any

import msgspec
import pytest

from smg_node.core.errors import SmgError
from smg_node.mcp.definition import (
    Credential,
    ServerDefinition,
    bearer,
    checked,
    definition_of,
    with_headers,
)
from smg_node.mcp.session.opening import Transport

GOOD = {"name": "s", "url": "https://tools.example/mcp"}


def test_a_url_is_opened_by_asking_and_a_command_by_running_it() -> None:
    assert definition_of(GOOD).plan.transport is None
    assert definition_of({"name": "s", "command": "x"}).plan.transport is Transport.STDIO
    pinned = definition_of({**GOOD, "transport": "http", "protocol": "2025-06-18"}).plan
    assert pinned.transport is Transport.HTTP
    assert pinned.revision is not None
    assert pinned.revision.name == "2025-06-18"


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"name": "a b"}, "name"),
        ({"name": ""}, "name"),
        ({"url": ""}, "url"),
        ({"command": "x"}, "url"),
        ({"url": "ftp://x/"}, "url"),
        ({"url": "http:///x"}, "url"),
        ({"url": "http://u:p@x/"}, "url"),
        ({"url": "http://x/#f"}, "url"),
        ({"url": "http://x:99999/"}, "url"),
        ({"url": "http://x:0/"}, "url"),
        ({"url": "http://x/a b"}, "url"),
        ({"url": "http://[x/"}, "url"),
        ({"transport": "stdio"}, "transport"),
        ({"transport": "carrier pigeon"}, "transport"),
        ({"protocol": "2020-01-01"}, "protocol"),
        ({"transport": "sse", "protocol": "2026-07-28"}, "protocol"),
        ({"concurrency": 0}, "concurrency"),
        ({"concurrency": "many"}, "concurrency"),
        ({"shape": "round"}, "shape"),
        ({"url": "", "command": "a\0"}, "command"),
    ],
)
def test_what_cannot_be_used_names_its_field(fields: dict[str, Any], where: str) -> None:
    with pytest.raises(SmgError) as caught:
        definition_of({**GOOD, **fields})
    assert caught.value.where == where


def test_the_digest_is_of_all_but_the_name() -> None:
    one = ServerDefinition("a", url="http://x/")
    assert one.digest == ServerDefinition("b", url="http://x/").digest
    assert one.digest != ServerDefinition("a", url="http://y/").digest
    assert one.digest != ServerDefinition("a", url="http://x/", protocol="2025-11-25").digest
    assert checked(one) is one


def test_the_digest_is_made_once_and_is_no_part_of_what_is_said() -> None:
    one = ServerDefinition("a", url="http://x/")
    assert one.digest is one.digest
    assert one == ServerDefinition("a", url="http://x/")
    assert "digest" not in msgspec.to_builtins(one)
    other = msgspec.structs.replace(one, url="http://y/")
    assert other.digest == ServerDefinition("a", url="http://y/").digest


def test_a_credential_prints_no_secret_and_knows_its_own() -> None:
    token = bearer("abcdef-secret")
    assert repr(token) == "Credential(authorization)"
    assert "secret" not in f"{token} {token!r}"
    assert set(token.secrets) == {"Bearer abcdef-secret", "abcdef-secret"}
    assert token.digest == bearer("abcdef-secret").digest != bearer("other-secret").digest
    assert (Credential().digest, Credential().secrets) == ("", ())


@pytest.mark.parametrize(
    "headers",
    [
        {"cookie": "a"},
        {"Host": "a"},
        {"Transfer-Encoding": "chunked"},
        {"expect": "100-continue"},
        {"proxy-authorization": "Basic a"},
        {"TE": "trailers"},
        {"upgrade": "h2c"},
        {"content-encoding": "gzip"},
        {"accept-encoding": "gzip"},
        {"mcp-session-id": "a"},
        {"a b": "x"},
        {"x": "a\nb"},
        {"x": ""},
        {"": "x"},
    ],
)
def test_headers_that_are_ours_or_none_are_refused(headers: dict[str, str]) -> None:
    with pytest.raises(SmgError):
        with_headers(headers)
