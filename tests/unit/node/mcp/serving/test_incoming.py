import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.mcp.serving.incoming import (
    BATCH_MAX,
    DEPTH_MAX,
    ID_BYTES_MAX,
    Incoming,
    read_messages,
)
from smg_node.mcp.serving.replies import Refusal

MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def body(method: Any = "tools/list", id_: Any = 1, **params: Any) -> bytes:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(message if id_ is None else {**message, "id": id_}).encode()


def head(method: str = "tools/list", name: str = "", version: str = MODERN) -> dict[str, str]:
    headers = {"mcp-protocol-version": version, "mcp-method": method}
    return {**headers, "mcp-name": name} if name else headers


def read(text: bytes, headers: dict[str, str] | None = None) -> Incoming | Refusal | None:
    found = read_messages(text, headers or {})
    assert not found.is_batch
    (message,) = found.all
    return message


def refused(text: bytes, headers: dict[str, str] | None = None) -> Refusal:
    message = read(text, headers)
    assert isinstance(message, Refusal), message
    return message


def taken(text: bytes, headers: dict[str, str] | None = None) -> Incoming:
    message = read(text, headers)
    assert isinstance(message, Incoming), message
    return message


@pytest.mark.parametrize("version", ["", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
@pytest.mark.parametrize("method", ["initialize", "ping", "tools/list", "tools/call"])
def test_methods_of_the_handshake_era(version: str, method: str) -> None:
    message = taken(body(method), {"mcp-protocol-version": version} if version else {})
    assert message.method == method
    assert not message.revision.modern
    assert message.revision.name == (version or "2025-11-25")


@pytest.mark.parametrize("method", ["server/discover", "tools/list", "tools/call"])
def test_methods_of_the_modern_era(method: str) -> None:
    message = taken(body(method, _meta=META), head(method))
    assert message.revision.name == MODERN
    assert message.capabilities == {}


@pytest.mark.parametrize(
    "method",
    [
        "server/discover",
        "prompts/list",
        "prompts/get",
        "resources/list",
        "logging/setLevel",
        "completion/complete",
        "tasks/get",
        "x" * 5000,
    ],
)
def test_what_is_not_offered_is_an_unknown_method_of_the_handshake_era(method: str) -> None:
    refusal = refused(body(method))
    assert (refusal.code, refusal.status, refusal.id) == (-32601, 200, b"1")
    assert len(refusal.message) < 200


@pytest.mark.parametrize(
    "method",
    ["initialize", "ping", "logging/setLevel", "resources/subscribe", "subscriptions/listen"],
)
def test_what_is_not_offered_is_404_in_the_modern_era(method: str) -> None:
    refusal = refused(body(method, "a", _meta=META), head(method))
    assert (refusal.code, refusal.status, refusal.id) == (-32601, 404, b'"a"')


@pytest.mark.parametrize(
    ("meta", "says"),
    [
        (None, "_meta is missing"),
        ("x", "_meta is missing"),
        ({}, "protocolVersion"),
        ({**META, "io.modelcontextprotocol/protocolVersion": 3}, "protocolVersion"),
        ({"io.modelcontextprotocol/protocolVersion": MODERN}, "clientCapabilities"),
        ({**META, "io.modelcontextprotocol/clientCapabilities": []}, "clientCapabilities"),
    ],
)
def test_a_modern_request_says_who_asks(meta: Any, says: str) -> None:
    params = {} if meta is None else {"_meta": meta}
    refusal = refused(body("server/discover", **params), head("server/discover"))
    assert (refusal.code, refusal.status) == (-32602, 400)
    assert says in refusal.message


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"mcp-protocol-version": "2025-11-25", "mcp-method": "tools/call", "mcp-name": "echo"},
        {"mcp-protocol-version": MODERN},
        {"mcp-protocol-version": MODERN, "mcp-method": "tools/list", "mcp-name": "echo"},
        {"mcp-protocol-version": MODERN, "mcp-method": "TOOLS/CALL", "mcp-name": "echo"},
        {"mcp-protocol-version": MODERN, "mcp-method": "tools/call"},
        {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "Echo"},
        {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "=?base64?!?="},
    ],
)
def test_headers_of_the_modern_era_are_equal_to_the_body(headers: dict[str, str]) -> None:
    refusal = refused(body("tools/call", _meta=META, name="echo"), headers)
    assert (refusal.code, refusal.status, refusal.id) == (-32020, 400, b"1")


@pytest.mark.parametrize(
    ("name", "header"), [("echo", "echo"), ("échø", "=?base64?w6ljaMO4?="), ("echo", " echo ")]
)
def test_a_name_is_taken_as_it_is_spelled_in_headers(name: str, header: str) -> None:
    taken(body("tools/call", _meta=META, name=name), head("tools/call", header))


def test_an_unknown_revision_is_told_the_known_ones() -> None:
    meta = {**META, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}
    refusal = refused(
        body("server/discover", _meta=meta), head("server/discover", version="2099-01-01")
    )
    assert (refusal.code, refusal.status) == (-32022, 400)
    assert refusal.about == {"supported": [MODERN], "requested": "2099-01-01"}


@pytest.mark.parametrize("id_", [1, 0, -7, "a", "", 10**30])
def test_an_id_comes_back_as_it_was(id_: Any) -> None:
    assert msgspec.json.decode(taken(body(id_=id_)).id) == id_


@pytest.mark.parametrize(
    "text",
    [
        b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
        b'{"jsonrpc":"2.0","id":true,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":"%b","method":"ping"}' % (b"x" * ID_BYTES_MAX),
        b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
        b'{"id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":7}',
        b'{"jsonrpc":"2.0","id":1,"method":null}',
        b'{"jsonrpc":"2.0","id":1}',
        b"3",
        b'"ping"',
        b"null",
    ],
)
def test_json_that_is_no_request_is_invalid(text: bytes) -> None:
    refusal = refused(text)
    assert (refusal.code, refusal.status) == (-32600, 400)


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b'{"jsonrpc"', b"{} {}", b"[1", b"nul"])
def test_what_is_no_json_is_a_parse_error(text: bytes) -> None:
    refusal = refused(text)
    assert (refusal.code, refusal.status, refusal.id) == (-32700, 400, b"null")


@pytest.mark.parametrize("params", [[], 3, "x", None])
def test_parameters_are_an_object(params: Any) -> None:
    text = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": params}).encode()
    assert refused(text).code == -32602


@pytest.mark.parametrize(
    ("levels", "good"), [(DEPTH_MAX - 1, True), (DEPTH_MAX, False), (900, False)]
)
@pytest.mark.parametrize(("open_", "close"), [("[", "]"), ('{"a":', "}")])
def test_parameters_nest_only_so_deep(levels: int, good: bool, open_: str, close: str) -> None:
    inner = open_ * levels + ("0" if open_ != "[" else "") + close * levels
    text = f'{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":{inner}}}}}'.encode()
    found = read(text)
    assert isinstance(found, Incoming) is good
    assert good or (isinstance(found, Refusal) and found.code == -32602)


def test_brackets_in_texts_are_no_levels() -> None:
    taken(body("ping", x="[{" * 500))


def test_notifications_and_answers_want_no_answer() -> None:
    assert read(body("notifications/initialized", None)) is None
    assert read(body("notifications/cancelled", None, requestId=1)) is None
    assert read(b'{"jsonrpc":"2.0","id":1,"result":{}}') is None
    assert read(b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}') is None
    assert read(body("notifications/cancelled", None, _meta=META), head()) is None


def test_the_modern_era_refuses_answers_and_notifications_of_unknown_revisions() -> None:
    assert refused(b'{"jsonrpc":"2.0","id":1,"result":{}}', head()).code == -32600
    unknown = refused(body("notifications/x", None), head(version="2099-01-01"))
    assert (unknown.code, unknown.id) == (-32022, b"null")


def test_arguments_keep_their_spelling() -> None:
    text = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"n":1.10,"i":9007199254740993}}}'
    assert taken(text).arguments == b'{"n":1.10,"i":9007199254740993}'
    assert taken(body("tools/call")).arguments == b""


@pytest.mark.parametrize("version", ["", "2025-03-26"])
def test_a_batch_is_taken_where_the_revision_has_batches(version: str) -> None:
    text = b"[%b,%b,%b,3]" % (body("ping"), body("notifications/x", None), body("initialize", 2))
    found = read_messages(text, {"mcp-protocol-version": version} if version else {})
    assert found.is_batch
    first, second, third, fourth = found.all
    assert isinstance(first, Incoming)
    assert second is None
    assert isinstance(third, Refusal)
    assert (third.code, third.id) == (-32600, b"2")
    assert isinstance(fourth, Refusal)


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", MODERN, "2099-01-01"])
def test_other_revisions_have_no_batches(version: str) -> None:
    refusal = refused(b"[%b]" % body("ping"), {"mcp-protocol-version": version})
    assert (refusal.code, refusal.status) == (-32600, 400)


@pytest.mark.parametrize("count", [0, BATCH_MAX + 1])
def test_a_batch_is_neither_empty_nor_large(count: int) -> None:
    assert refused(b"[%b]" % b",".join([body("ping")] * count)).code == -32600


@pytest.mark.parametrize(
    ("token", "kept"),
    [("a", "a"), (7, 7), (True, None), (1.5, None), ({}, None), ("x" * 2000, None)],
)
def test_a_progress_token_is_a_string_or_an_integer(token: Any, kept: Any) -> None:
    assert taken(body("tools/call", _meta={"progressToken": token})).progress_token == kept


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
NAMED = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | VALUES,
        "id": VALUES,
        "method": st.sampled_from(["ping", "tools/call", "tools/list", "server/discover"]) | VALUES,
        "params": st.fixed_dictionaries({"_meta": st.just(META) | VALUES}) | VALUES,
        "result": VALUES,
        "error": VALUES,
    },
)
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "mcp-protocol-version": st.sampled_from([MODERN, "2025-03-26", "2025-11-25"]) | st.text(),
        "mcp-method": st.sampled_from(["tools/call", "tools/list"]) | st.text(max_size=9),
        "mcp-name": st.text(max_size=9),
    },
)


@given(st.binary(max_size=60) | NAMED.map(lambda one: json.dumps(one).encode()), HEADERS)
def test_any_bytes_are_a_request_or_a_refusal_that_is_json(
    text: bytes, headers: dict[str, str]
) -> None:
    found = read_messages(text, headers)
    assert found.all
    for message in found.all:
        if isinstance(message, Refusal):
            told = msgspec.json.decode(message.body)
            assert told["jsonrpc"] == "2.0"
            assert told["error"]["code"] == message.code
            assert message.status in (200, 400, 404)
        elif message is not None:
            assert msgspec.json.decode(message.id) is not None
