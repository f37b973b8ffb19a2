"""What a client gets wrong is a 4xx that says where, and neither engine nor node notices.

The engine is a real one that dies of token ids it does not have.
"""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from support.http.chat_client import CHAT, JSON, chat, content_of, port_of, say
from support.http.raw_http import Response, ask, connect
from support.models.tiny_model import CONTEXT
from support.processes.mlx_engine import MlxEngine
from support.processes.node import RunningNode, running_node

pytestmark = pytest.mark.integration

COMPLETIONS = "/v1/completions"
TOKENIZE = "/v1/tokenize"
DETOKENIZE = "/v1/detokenize"
BODY_MAX = 300_000
NESTING_MAX = 128


@pytest.fixture(scope="module")
def node(mlx: MlxEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    workers = [f"grpc://{mlx.address}?model=tiny"]
    limits = ("--http.body-max-bytes", str(BODY_MAX))
    with running_node(tmp_path_factory.mktemp("node"), workers=workers, flags=limits) as running:
        yield running


@pytest.fixture
def port(node: RunningNode) -> int:
    return port_of(node.url)


@pytest.fixture(autouse=True)
async def nobody_notices(port: int, node: RunningNode, mlx: MlxEngine) -> AsyncIterator[None]:
    """The engine was not asked meanwhile, and says what it always says afterwards."""
    tokens = node.metric("smg_node_completion_tokens_total")
    yield
    assert node.metric("smg_node_completion_tokens_total") == tokens
    assert content_of(await say(port, chat("tiny"))) == mlx.script.text
    assert mlx.process.ended() is None
    assert "Traceback" not in node.process.said()


def refused(answer: Response, *, status: int, code: str | None = None) -> dict[str, Any]:
    """Return the error of a refusal, which must be one of ours."""
    assert answer.status == status, answer.body
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.headers["x-request-id"]
    error = answer.error()
    assert isinstance(error, dict)
    assert error.keys() == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error"
    assert answer.headers["x-smg-error-code"] == error["code"]
    if code is not None:
        assert error["code"] == code
    return error


def complete(**fields: Any) -> dict[str, Any]:
    return {"model": "tiny", "prompt": "Hello?", "max_tokens": 4, **fields}


def said(**fields: Any) -> dict[str, Any]:
    return chat("tiny", **fields)


USER = {"role": "user", "content": "x"}
OUTSIDE = 10**6

# Path, body, and the parameter or the limit that the answer must name.
WRONG: list[tuple[str, dict[str, Any], str, str]] = [
    # Wrong types.
    (CHAT, said(messages="hello"), "messages", "array"),
    (CHAT, said(messages={"role": "user"}), "messages", "array"),
    (CHAT, said(messages=["hello"]), "messages[0]", "object"),
    (CHAT, said(messages=[USER, {"role": 5, "content": "x"}]), "messages[1].role", ""),
    (CHAT, said(messages=[{"role": "user", "content": {"a": 1}}]), "messages[0].content", ""),
    (
        CHAT,
        said(messages=[{"role": "user", "content": [{"type": "text", "text": 3}]}]),
        "messages[0].content[0].text",
        "",
    ),
    (CHAT, {**said(), "model": 7}, "model", "string"),
    (CHAT, {**said(), "model": ""}, "model", ""),
    (CHAT, said(temperature="hot"), "temperature", "number"),
    (CHAT, said(stream="yes"), "stream", "boolean"),
    (CHAT, said(stop=[5]), "stop[0]", "string"),
    (CHAT, said(logit_bias=[1, 2]), "logit_bias", "object"),
    (CHAT, said(tools={"type": "function"}), "tools", "array"),
    (CHAT, said(max_tokens=True), "max_tokens", "integer"),
    (CHAT, said(max_tokens=1.5), "max_tokens", "integer"),
    (COMPLETIONS, complete(prompt={"text": "x"}), "prompt", "string"),
    (COMPLETIONS, complete(prompt=[1, "x"]), "prompt[1]", "token id"),
    (COMPLETIONS, complete(prompt=["x", 1]), "prompt[1]", "string"),
    (TOKENIZE, {"model": "tiny", "prompt": 5}, "prompt", ""),
    (DETOKENIZE, {"model": "tiny", "tokens": "x"}, "tokens", ""),
    # Missing and empty.
    (CHAT, {"messages": [USER]}, "model", "required"),
    (CHAT, {"model": "tiny"}, "messages", "required"),
    (CHAT, said(messages=[]), "messages", "at least 1"),
    (CHAT, said(messages=[{}]), "messages[0].role", "required"),
    (COMPLETIONS, {"model": "tiny"}, "prompt", "required"),
    (COMPLETIONS, complete(prompt=[]), "prompt", "empty"),
    (COMPLETIONS, complete(prompt=""), "prompt", "empty"),
    (COMPLETIONS, complete(prompt=[[5], []]), "prompt[1]", "empty"),
    # Too much, too little, negative.
    (CHAT, said(n=17), "n", "16"),
    (CHAT, said(n=10**30), "n", "16"),
    (CHAT, said(n=0), "n", "1"),
    (CHAT, said(n=-1), "n", "1"),
    (COMPLETIONS, complete(prompt=["x"] * 10, n=16), "prompt", "128"),
    (COMPLETIONS, complete(prompt=["x"] * 129), "prompt", "128"),
    (CHAT, said(max_tokens=0), "max_tokens", "1"),
    (CHAT, said(max_tokens=-5), "max_tokens", "1"),
    (CHAT, said(temperature=-0.1), "temperature", "0"),
    (CHAT, said(temperature=1e300), "temperature", "2"),
    (CHAT, said(top_p=-1), "top_p", "0"),
    (CHAT, said(top_p=2), "top_p", "1"),
    (CHAT, said(top_k=-2), "top_k", ""),
    (CHAT, said(min_p=-0.5), "min_p", "0"),
    (CHAT, said(frequency_penalty=-3), "frequency_penalty", "2"),
    (CHAT, said(repetition_penalty=-1), "repetition_penalty", ""),
    (CHAT, said(seed=2**70), "seed", ""),
    (CHAT, said(logprobs=True, top_logprobs=21), "top_logprobs", "20"),
    (CHAT, said(stop=["x"] * 17), "stop", "16"),
    (CHAT, said(stop="x" * 257), "stop", "256"),
    (CHAT, said(logit_bias={str(i): 1 for i in range(1025)}), "logit_bias", "1024"),
    (CHAT, said(messages=[USER] * 8193), "messages", "8192"),
    (CHAT, said(metadata={str(i): "x" for i in range(17)}), "metadata", "16"),
    # Ids the vocabulary does not have: the engine would die of them.
    (COMPLETIONS, complete(prompt=[5, OUTSIDE]), "prompt[1]", "vocabulary"),
    (COMPLETIONS, complete(prompt=[2**40]), "prompt[0]", ""),
    (COMPLETIONS, complete(prompt=[-1]), "prompt[0]", ""),
    (COMPLETIONS, complete(prompt=[[5], [OUTSIDE]]), "prompt[1][0]", "vocabulary"),
    (CHAT, said(logit_bias={str(OUTSIDE): 1}), f"logit_bias.{OUTSIDE}", "vocabulary"),
    (CHAT, said(logit_bias={"-1": 1}), "logit_bias.-1", ""),
    (CHAT, said(stop_token_ids=[OUTSIDE]), "stop_token_ids", "vocabulary"),
    (CHAT, said(stop_token_ids=[-1]), "stop_token_ids[0]", ""),
    (DETOKENIZE, {"model": "tiny", "tokens": [5, OUTSIDE]}, "tokens[1]", "vocabulary"),
    # More than the context.
    (COMPLETIONS, complete(prompt=[5] * CONTEXT), "prompt", str(CONTEXT)),
    (CHAT, said(messages=[{"role": "user", "content": "x y " * 40_000}]), "messages", str(CONTEXT)),
    (CHAT, said(min_tokens=CONTEXT + 1), "min_tokens", ""),
]


@pytest.mark.parametrize(
    ("path", "body", "param", "word"),
    WRONG,
    ids=[f"{number}-{param}" for number, (_, _, param, _) in enumerate(WRONG)],
)
async def test_a_wrong_value_is_named_by_its_path_and_its_limit(
    port: int, path: str, body: dict[str, Any], param: str, word: str
) -> None:
    error = refused(await ask(port, "POST", path, body, JSON), status=400)
    assert error["param"] == param
    assert word in error["message"]
    assert len(error["message"]) < 2_000


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("path", [CHAT, COMPLETIONS, TOKENIZE])
async def test_an_unknown_model_is_not_found(port: int, path: str, streamed: bool) -> None:
    body = {"model": "huge", "prompt": "x"}
    if path == CHAT:
        body = chat("huge")
    if path != TOKENIZE:
        body = {**body, "stream": streamed}  # type: ignore[dict-item]  # bodies hold anything
    error = refused(await ask(port, "POST", path, body, JSON), status=404, code="model_not_found")
    assert error["param"] == "model"
    assert "huge" in error["message"]


async def test_everything_wrong_is_told_in_one_go(port: int) -> None:
    body = said(temperature=-1, top_p=3, n=0, max_tokens="x", stop=[""])
    error = refused(await say(port, body), status=400)
    for name in ("temperature", "top_p", "n", "max_tokens", "stop[0]"):
        assert name in error["message"]


GOOD = json.dumps(said()).encode()
MALFORMED = {
    "empty": b"",
    "blank": b"  \n",
    "cut": GOOD[:-1],
    "two values": GOOD + GOOD,
    "trailing comma": GOOD[:-1] + b",}",
    "single quotes": GOOD.replace(b'"', b"'"),
    "not a number": GOOD[:-1] + b', "temperature": NaN}',
    "infinite": GOOD[:-1] + b', "temperature": Infinity}',
    "beyond a double": GOOD[:-1] + b', "temperature": 1e999}',
    "comment": GOOD + b"// please",
    "utf-16": GOOD.decode().encode("utf-16"),
    "latin-1": b'{"model": "tiny", "messages": [{"role": "user", "content": "caf\xe9"}]}',
    "cut character": b'{"model": "tiny", "messages": [{"role": "user", "content": "\xf0\x9f\x99"}]}',
    "encoded surrogate": b'{"model": "tiny", "messages": [{"role": "user", "content": "\xed\xa0\x80"}]}',
    "lone surrogate": b'{"model": "tiny", "messages": [{"role": "user", "content": "\\ud83d"}]}',
    "control character": b'{"model": "tiny", "messages": [{"role": "user", "content": "a\nb"}]}',
    "zeros": bytes(100),
}


@pytest.mark.parametrize("name", MALFORMED)
async def test_what_is_no_json_is_called_that(port: int, name: str) -> None:
    answer = await ask(port, "POST", CHAT, MALFORMED[name], JSON)
    refused(answer, status=400, code="invalid_json")


async def test_a_byte_order_mark_before_a_body_is_skipped(port: int) -> None:
    body = b"\xef\xbb\xbf" + json.dumps({"model": "tiny", "prompt": "Hello?"}).encode()
    answer = await ask(port, "POST", TOKENIZE, body, JSON)
    assert answer.status == 200


@pytest.mark.parametrize("body", [b"null", b"5", b'"x"', b"[]", b"[1]", b"true"])
async def test_json_that_is_no_object_is_refused(port: int, body: bytes) -> None:
    error = refused(await ask(port, "POST", CHAT, body, JSON), status=400)
    assert "object" in error["message"]


@pytest.mark.parametrize("levels", [NESTING_MAX + 1, 900, 5_000, 140_000])
@pytest.mark.parametrize(("opens", "closes"), [(b"[", b"]"), (b'{"a":', b"}")])
async def test_deep_nesting_is_refused_before_it_is_read(
    port: int, opens: bytes, closes: bytes, levels: int
) -> None:
    levels = min(levels, (BODY_MAX - 1000) // (len(opens) + len(closes)))
    nested = opens * levels + b"1" + closes * levels
    for body in (nested, GOOD[:-1] + b', "x": ' + nested + b"}"):
        error = refused(await ask(port, "POST", CHAT, body, JSON), status=400, code="invalid_json")
        assert str(NESTING_MAX) in error["message"]


async def test_a_body_that_says_it_is_too_large_is_refused_unread(port: int) -> None:
    async with connect(port) as client:
        await client.send("POST", CHAT, GOOD, {**JSON, "content-length": str(BODY_MAX + 1)})
        error = refused(await client.response(), status=413, code="request_too_large")
        assert str(BODY_MAX) in error["message"]
        assert await client.at_end()


async def test_a_chunked_body_is_refused_at_the_byte_too_many(port: int) -> None:
    async with connect(port) as client:
        await client.send(
            "POST", CHAT, b"", {**JSON, "transfer-encoding": "chunked", "content-length": "-"}
        )
        piece = b"%x\r\n" % 65_536 + b" " * 65_536 + b"\r\n"
        # It has no end.
        for _ in range(BODY_MAX // 65_536 + 1):
            client.writer.write(piece)
        error = refused(await client.response(), status=413, code="request_too_large")
        assert str(BODY_MAX) in error["message"]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "x"])
async def test_another_content_type_is_refused(port: int, kind: str) -> None:
    answer = await ask(port, "POST", CHAT, GOOD, {"content-type": kind})
    error = refused(answer, status=415, code="unsupported_media_type")
    assert "application/json" in error["message"]


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
async def test_another_method_is_refused_with_the_right_ones(port: int, method: str) -> None:
    answer = await ask(port, method, CHAT)
    refused(answer, status=405)
    assert "POST" in answer.headers["allow"]


@pytest.mark.parametrize(
    "path",
    ["/v1/chat/completion", "/v1/chat/completions/", "/v2/models", "/..", "/%00", "/" + "x" * 4000],
)
async def test_an_unknown_path_is_refused_in_json(port: int, path: str) -> None:
    error = refused(await ask(port, "POST", path, GOOD, JSON), status=404, code="unknown_url")
    assert len(error["message"]) < 1000


async def test_a_head_that_is_too_large_is_refused(port: int) -> None:
    answer = await ask(port, "POST", CHAT, GOOD, {**JSON, "x-long": "x" * 17_000})
    refused(answer, status=431)
    many = {f"x-{number}": "x" for number in range(130)}
    refused(await ask(port, "POST", CHAT, GOOD, {**JSON, **many}), status=431)


async def test_bytes_that_are_no_http_are_refused(port: int) -> None:
    async with connect(port) as client:
        client.writer.write(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello\r\n\r\n")
        refused(await client.response(), status=400)
        assert await client.at_end()
