"""Ten thousand spoilt bodies: each is refused or answered, and neither node nor engine is worse for it."""

import asyncio
import json
import logging
import random
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from support.answers.sse_client import read_frames
from support.http.chat_client import CHAT, JSON, chat, content_of, port_of, say
from support.http.raw_http import RawClient, Response, connect
from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import SAYS, Simulated, running_simulated

_log = logging.getLogger(__name__)

pytestmark = pytest.mark.integration

BODIES: Final = 10_000
CLIENTS: Final = 8
SEED: Final = 20260117

TOOL = {
    "type": "function",
    "function": {"name": "f", "parameters": {"type": "object", "properties": {"x": {}}}},
}
SEEDS: Final[list[tuple[str, dict[str, Any]]]] = [
    (CHAT, chat("sim", max_tokens=2)),
    (
        CHAT,
        {
            "model": "sim",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "é 🙂 \u0000"}]},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "c1",
                            "type": "function",
                            "function": {"name": "f", "arguments": "{}"},
                        }
                    ],
                },
                {"role": "tool", "tool_call_id": "c1", "content": "42"},
            ],
            "max_completion_tokens": 2,
            "tools": [TOOL],
            "tool_choice": "auto",
            "temperature": 0.5,
            "top_p": 0.9,
            "n": 2,
            "seed": 7,
            "stop": ["x", "yz"],
            "logit_bias": {"5": -3},
            "logprobs": True,
            "top_logprobs": 1,
        },
    ),
    (
        CHAT,
        chat(
            "sim",
            max_tokens=2,
            stream=True,
            stream_options={"include_usage": True},
            stop_token_ids=[3, 5],
            min_tokens=1,
            ignore_eos=True,
            chat_template_kwargs={"enable_thinking": False},
            response_format={
                "type": "json_schema",
                "json_schema": {"name": "s", "schema": {"type": "object"}},
            },
        ),
    ),
    ("/v1/completions", {"model": "sim", "prompt": "Once", "max_tokens": 2, "logprobs": 1}),
    (
        "/v1/completions",
        {"model": "sim", "prompt": [[3, 4, 5], [6]], "max_tokens": 1, "echo": True, "n": 1},
    ),
    ("/v1/tokenize", {"model": "sim", "prompt": ["a", "b c"]}),
    ("/v1/tokenize", {"model": "sim", "messages": [{"role": "user", "content": "Hi"}]}),
    ("/v1/detokenize", {"model": "sim", "tokens": [3, 4, 5], "skip_special_tokens": False}),
]
ODD_VALUES: Final[list[Any]] = [
    *(None, True, False, 0, 1, -1, 2**31, 2**63, 2**64, -(2**63) - 1, 10**40, 432, 433, 4160),
    *(0.5, -0.5, 1e308, -0.0, 5e-324),
    *(
        "",
        " ",
        "\x00",
        "x" * 5000,
        "🙂",
        "\u202e",
        "null",
        "{{ 7 * 7 }}",
        "{% for %}",
        "<|im_end|>",
    ),
    *([], [[]], [None], [0] * 3000, [-1], [1.5], {}, {"": ""}, {"type": "text"}, {"a": {"b": [1]}}),
    *([{"role": "user"}], [[1, 2], [3]], ["a", 1], "auto", "required", "none", "json_object"),
]
ODD_BYTES: Final = [
    *(b"\xff", b"\xc3", b"\xed\xa0\x80", b"\x00", b"\xef\xbb\xbf", b"\\ud800", b"\\u0000"),
    *(b"NaN", b"-Infinity", b"1e999", b"1" * 400, b"[" * 200, b'{"a":' * 150, b"//", b"'", b","),
    *(b'"', b"}", b"]", b":", b"\\", b"\n", b"-", b"0"),
]


# ── Spoiling ─────────────────────────────────────────────────────────────────


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return every (container, key) below `value`."""
    own: list[tuple[Any, Any]]
    if isinstance(value, dict):
        own = [(value, key) for key in value]
    elif isinstance(value, list):
        own = [(value, index) for index in range(len(value))]
    else:
        return []
    return own + [place for container, key in own for place in places(container[key])]


def spoil_value(rng: random.Random, body: dict[str, Any]) -> bytes:
    body = json.loads(json.dumps(body))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        found = places(body)
        if not found:
            break
        container, key = rng.choice(found)
        what = rng.random()
        if what < 0.65:
            container[key] = deepcopy(rng.choice(ODD_VALUES))
        elif what < 0.75:
            del container[key]
        elif what < 0.85:
            container[key] = [container[key]]
        elif isinstance(container, dict):
            container[rng.choice((key + "x", key.upper(), "", "x" * 300))] = container.pop(key)
        else:
            container.extend(container[:1] * rng.choice((1, 50)))
    return json.dumps(body, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")


def spoil_bytes(rng: random.Random, body: dict[str, Any]) -> bytes:
    raw = bytearray(json.dumps(body).encode())
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(raw) + 1)
        end = min(len(raw), at + rng.choice((1, 2, 8, 40)))
        what = rng.random()
        if what < 0.3:
            raw[at:at] = rng.choice(ODD_BYTES)
        elif what < 0.5:
            del raw[at:end]
        elif what < 0.7:
            raw[at:end] = rng.randbytes(end - at)
        elif what < 0.8:
            raw[at:at] = raw[at:end]
        elif what < 0.9:
            del raw[at:]
        elif at < len(raw):
            raw[at] ^= 1 << rng.randrange(8)
    return bytes(raw)


def spoilt(rng: random.Random, count: int) -> Iterator[tuple[str, bytes]]:
    for _ in range(count):
        path, body = rng.choice(SEEDS)
        spoil = spoil_value if rng.random() < 0.6 else spoil_bytes
        yield path, spoil(rng, body)


# ── Judging ──────────────────────────────────────────────────────────────────


@dataclass
class Seen:
    """What came of the bodies so far; `calls` is how often an engine must have been asked."""

    statuses: Counter[int] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    calls: int = 0

    def take(self, path: str, body: bytes, answer: Response) -> None:
        self.statuses[answer.status] += 1
        assert answer.status == 200 or 400 <= answer.status < 499, (answer, body)
        if answer.status != 200:
            self._refusal(answer, body)
            return
        if answer.headers["content-type"].startswith("text/event-stream"):
            streamed = read_frames(answer.body)
            assert streamed.done, (answer, body)
            assert not any("error" in chunk for chunk in streamed.chunks), (answer, body)
        if path == CHAT:
            self.calls += 1
        elif path == "/v1/completions":
            prompt = json.loads(body)["prompt"]
            many = isinstance(prompt, list) and not isinstance(prompt[0], int)
            self.calls += len(prompt) if many else 1

    def _refusal(self, answer: Response, body: bytes) -> None:
        error = answer.error()
        assert error.keys() == {"message", "type", "param", "code"}, (answer, body)
        assert isinstance(error["message"], str)
        assert 0 < len(error["message"]) < 10_000, (answer, body[:300])
        assert error["param"] is None or isinstance(error["param"], str)
        self.codes[error["code"]] += 1


async def send_all(port: int, bodies: list[tuple[str, bytes]], seen: Seen) -> None:
    """Send bodies one after the other, on one connection as long as the node keeps it."""
    left = iter(bodies)
    over = False
    while not over:
        async with connect(port) as client:
            over = await send_some(client, left, seen)


async def send_some(client: RawClient, left: Iterator[tuple[str, bytes]], seen: Seen) -> bool:
    for path, body in left:
        await client.send("POST", path, body, JSON)
        answer = await client.response()
        seen.take(path, body, answer)
        if answer.headers.get("connection") == "close":
            return False
    return True


@pytest.fixture
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    """An engine of the kind that dies of what it should not have been sent."""
    flags = ("--model", "sim", "--itl-ms", "0", "--prefill-tokens-per-s", "0", "--killers", "die")
    with running_simulated(tmp_path_factory.mktemp("engine"), *flags) as running:
        yield running


@pytest.fixture
def node(engine: Simulated, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    workers = [f"grpc://{engine.address}"]
    quiet = ("--telemetry.access-log", "false")
    with running_node(tmp_path_factory.mktemp("node"), workers=workers, flags=quiet) as running:
        yield running


async def test_ten_thousand_spoilt_bodies_give_no_5xx_and_reach_no_engine(
    node: RunningNode, engine: Simulated
) -> None:
    port = port_of(node.url)
    rng = random.Random(SEED)
    seen = Seen()
    async with asyncio.TaskGroup() as group:
        for _ in range(CLIENTS):
            group.create_task(send_all(port, list(spoilt(rng, BODIES // CLIENTS)), seen))
    _log.info("%s %s", seen.statuses, seen.codes)
    assert seen.statuses.total() == BODIES
    assert seen.statuses[400] > BODIES / 3, "mutations that spoil nothing test nothing"
    assert content_of(await say(port, chat("sim"))) == SAYS
    assert node.metric("smg_node_worker_inflight") == 0
    assert "Traceback" not in node.process.said()
    assert engine.process.ended() is None
    tally = engine.tally()
    assert tally["requests"] == seen.calls + 1
    assert tally["refused"] == 0
