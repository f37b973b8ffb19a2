"""Definitions of servers as plain values: what they mean, what is wrong with them, and that nothing is lost."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.mcp.definition import bearer
from smg_node.mcp.pool import Target
from smg_node.mcp.spec_parser import CODE, parse_server, parse_servers, plain_server
from smg_node.mcp.tool_servers import ResolvedServer

URL = "https://docs.example/mcp"
ISSUER = {"kind": "client_credentials", "client_id": "node", "client_secret": "shh-secret"}
WHOLE: dict[str, Any] = {
    "url": URL,
    "transport": "http",
    "protocol": "2025-11-25",
    "concurrency": 4,
    "auth": {
        "kind": "client_credentials",
        "token_url": "https://issuer.example/token",
        "client_id": "node",
        "client_secret": "shh-client-secret",
        "scope": "tools",
        "resource": "https://docs.example",
        "in_body": True,
    },
    "forward_headers": ["X-Team"],
    "tenants": ["acme"],
    "keys": ["k1"],
    "trust": "trusted",
    "session": "thread",
    "replay": "always",
    "idempotency": "header:Idempotency-Key",
    "tools": {
        "search": {
            "alias": "find",
            "shape": "web_search",
            "arguments": {"rename": {"q": "query"}, "defaults": {"n": 5}, "fixed": {"safe": True}},
            "approval": "ask",
            "timeout_s": 20,
            "output_bytes_max": 4096,
            "price_per_call": 0.005,
            "read_only": False,
            "idempotent": True,
            "defer": True,
            "hidden": True,
        }
    },
    "rules": [{"tools": "get_*", "verdict": "allow"}, {"tools": "*", "verdict": "ask"}],
    "builtin": {"web_search": "search"},
    "description": "Documents",
    "required": True,
    "internal": True,
    "pin": True,
    "pinned": ["abcdefghijkl", "mnopqrstuvwx"],
    "may_defer": False,
}


def refusal(fields: dict[str, Any], *, programs: bool = False) -> SmgError:
    with pytest.raises(SmgError) as caught:
        parse_server("docs", fields, programs=programs, kept={})
    assert caught.value.code == CODE
    return caught.value


def test_everything_that_can_be_said_is_read_and_said_again() -> None:
    parsed = parse_server("docs", WHOLE, programs=False, kept={})
    assert parsed.secrets == {"client_secret": "shh-client-secret"}
    spec = parsed.spec
    assert (spec.forward_headers, spec.idempotency) == (("x-team",), "header:idempotency-key")
    assert spec.rules == (("get_*", "allow"), ("*", "ask"))
    rule = spec.rule("search")
    assert (rule.price_per_call, rule.rename, rule.read_only) == ("0.005", {"q": "query"}, False)
    assert (spec.pin, spec.pinned, spec.may_defer) == (True, tuple(WHOLE["pinned"]), False)
    plain = plain_server(spec)
    assert "shh" not in msgspec.json.encode(plain).decode()
    again = parse_server("docs", plain, programs=False, kept=parsed.secrets)
    assert again == parsed


def test_nothing_that_is_printed_holds_a_secret() -> None:
    fields = {"command": "server", "env": {"TOKEN": "shh-variable"}}
    parsed = parse_server("local", fields, programs=True, kept={})
    definition = msgspec.structs.replace(parsed.spec.definition, env={"TOKEN": "shh-variable"})
    spec = msgspec.structs.replace(parsed.spec, definition=definition)
    server = ResolvedServer("local", spec, Target(definition, bearer("shh-token")))
    for printed in (parsed, spec, server, [server], {"x": parsed}):
        assert "shh" not in f"{printed} {printed!r}"
        assert "local" in repr(printed)


@pytest.mark.parametrize(
    ("said", "where"),
    [
        ({"pin": True}, "pinned"),
        ({"pinned": []}, "pinned"),
        ({"pin": False, "pinned": ["x"]}, "pinned"),
        ({"pin": True, "pinned": "x"}, "pinned"),
        ({"pin": 1, "pinned": []}, "pin"),
        ({"may_defer": "no"}, "may_defer"),
    ],
)
def test_pins_belong_together(said: dict[str, Any], where: str) -> None:
    assert refusal({"url": URL, **said}).where == where


def test_nothing_may_be_pinned_so_that_everything_is_asked_about() -> None:
    said = {"url": URL, "pin": True, "pinned": []}
    assert plain_server(parse_server("docs", said, programs=False, kept={}).spec) == said


def test_a_definition_says_only_what_is_no_default() -> None:
    parsed = parse_server("docs", {"url": URL}, programs=False, kept={})
    assert plain_server(parsed.spec) == {"url": URL}
    assert parsed.secrets == {}


@pytest.mark.parametrize(
    ("auth", "secrets"),
    [
        ({"kind": "bearer", "token": "file:/run/secrets/t"}, {"token": "file:/run/secrets/t"}),
        ({"kind": "headers", "headers": {"X-Key": "abc"}}, {"headers.x-key": "abc"}),
        ("none", {}),
        ("client", {}),
    ],
)
def test_secrets_stand_apart_and_stay_where_they_are_left_out(auth: Any, secrets: Any) -> None:
    parsed = parse_server("docs", {"url": URL, "auth": auth}, programs=False, kept={})
    assert parsed.secrets == secrets
    kept = parse_server("docs", plain_server(parsed.spec), programs=False, kept=secrets)
    assert kept == parsed
    unknown = parse_server("docs", plain_server(parsed.spec), programs=False, kept=None)
    assert unknown.spec == parsed.spec
    assert unknown.secrets == {}


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        ({"url": ""}, "url"),
        ({"url": "ftp://x"}, "url"),
        ({"url": "https://u:p@x/"}, "url"),
        ({"urll": "x"}, "urll"),
        ({"trust": "much"}, "trust"),
        ({"auth": "bearer"}, "auth.token"),
        ({"auth": {"kind": "bearer", "token": 5}}, "auth.token"),
        ({"auth": {"kind": "bearer", "token": "file:secret"}}, "auth.token"),
        ({"auth": {"kind": "headers"}}, "auth.headers"),
        ({"auth": {"kind": "headers", "headers": {"cookie": "x"}}}, "auth.headers.cookie"),
        ({"auth": {"kind": "none", "token": "x"}}, "auth.token"),
        ({"auth": {"kind": "magic"}}, "auth.kind"),
        ({"auth": {**ISSUER, "token_url": "https://"}}, "auth.token_url"),
        ({"auth": {**ISSUER, "token_url": "https://u:p@issuer.example/"}}, "auth.token_url"),
        ({"auth": {**ISSUER, "token_url": "file:///etc/passwd"}}, "auth.token_url"),
        ({"forward_headers": ["x-a", "Authorization"]}, "forward_headers[1]"),
        ({"forward_headers": ["mcp-session-id"]}, "forward_headers[0]"),
        ({"forward_headers": ["x y"]}, "forward_headers[0]"),
        ({"forward_headers": ["x-amz-security-token"]}, "forward_headers[0]"),
        ({"forward_headers": ["x-a", "cookie2"]}, "forward_headers[1]"),
        ({"forward_headers": ["sec-fetch-site"]}, "forward_headers[0]"),
        ({"forward_headers": ["traceparent"]}, "forward_headers[0]"),
        ({"idempotency": "argument:"}, "idempotency"),
        ({"idempotency": "header:host"}, "idempotency"),
        ({"tools": {"a": {"alias": "a b"}}}, "tools.a.alias"),
        ({"tools": {"a": {"timeout_s": -1}}}, "tools.a.timeout_s"),
        ({"tools": {"a": {"price_per_call": "1e3"}}}, "tools.a.price_per_call"),
        ({"tools": {"a": {"price_per_call": "5000000"}}}, "tools.a.price_per_call"),
        ({"tools": {"a": {"price_per_call": 1000000.5}}}, "tools.a.price_per_call"),
        ({"tools": {"a": {"arguments": {"rename": {"x": "q", "y": "q"}}}}}, "tools.a.arguments.rename"),
        ({"rules": [{"tools": "*"}]}, "rules[0].verdict"),
        ({"builtin": {"shell": "x"}}, "builtin.shell"),
        ({"concurrency": 0}, "concurrency"),
        ({"protocol": "2031-01-01"}, "protocol"),
        ({"env": {"A": "b"}}, "env"),
    ],
)  # fmt: skip
def test_every_mistake_names_its_field(wrong: dict[str, Any], where: str) -> None:
    assert refusal({"url": URL, **wrong}).where == where


def test_a_program_is_for_a_nodes_own_file_only() -> None:
    fields = {"command": "server", "args": ["-v", ""], "env": {"TOKEN": "env:TOKEN"}, "cwd": "/srv"}
    assert refusal(fields).where == "command"
    parsed = parse_server("local", fields, programs=True, kept={})
    assert parsed.spec.definition.args == ("-v", "")
    assert parsed.spec.definition.env == {}
    assert parsed.secrets == {"env.TOKEN": "env:TOKEN"}
    assert refusal({**fields, "auth": "client"}, programs=True).where == "auth.kind"
    assert refusal({**fields, "forward_headers": ["x-a"]}, programs=True).where == "forward_headers"


def test_a_definition_is_small() -> None:
    refused = refusal({"url": URL, "tenants": [f"tenant-{at:010}" for at in range(900)]})
    assert "16,384 bytes" in refused.message


def test_a_file_names_the_server_that_is_wrong() -> None:
    with pytest.raises(SmgError) as caught:
        parse_servers({"docs": {"url": URL}, "b": {"url": URL, "required": 1}})
    assert caught.value.where == "servers.b.required"
    assert "servers.b: required" in caught.value.message
    with pytest.raises(SmgError) as caught:
        parse_servers({"a b": {"url": URL}})
    assert caught.value.where == "servers.a b.name"
    with pytest.raises(SmgError) as caught:
        parse_servers({"a": []})
    assert caught.value.where == "servers.a"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
_SECRET = "s3cr3t-value-never-shown"


@given(st.dictionaries(st.sampled_from([*WHOLE, "command", "env", "args"]), _JSON, max_size=8))
def test_any_values_are_a_server_or_a_mistake_with_a_place(fields: dict[str, Any]) -> None:
    parsed = None
    codes: list[str] = []
    try:
        parsed = parse_server("s", {"url": URL, **fields}, programs=True, kept=None)
    except SmgError as error:
        codes.append(error.code)
    if parsed is None:
        assert codes == [CODE]
        return
    again = parse_server("s", plain_server(parsed.spec), programs=True, kept=parsed.secrets)
    assert again.spec == parsed.spec


@given(st.sampled_from(sorted(WHOLE)), _JSON)
def test_no_mistake_repeats_a_secret(key: str, value: Any) -> None:
    auth = {"kind": "headers", "headers": {"x-key": _SECRET}}
    fields = {"url": URL, "auth": auth, key: value, "unknown": 1}
    if key == "auth":
        fields["auth"] = {"kind": "bearer", "token": [_SECRET], "extra": value}
    with pytest.raises(SmgError) as caught:
        parse_server("s", fields, programs=False, kept={})
    assert _SECRET not in caught.value.message
