"""Every route answers a large body as it answers a small one, and reads it beside the loop."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from smg_node.http.message import large_bodies
from smg_node.http.routes.inference import generation
from support.engines.relay_bench import relay_bench, told, worker
from support.http.chat_client import JSON
from support.http.http_node import node
from support.http.raw_http import ask

HELLO = [{"role": "user", "content": "Hello"}]
ROUTES: list[tuple[str, dict[str, Any]]] = [
    ("/v1/chat/completions", {"model": "tiny", "messages": HELLO}),
    ("/v1/chat/completions", {"model": "tiny", "messages": HELLO, "logprobs": True}),
    ("/v1/chat/completions", {"model": "tiny", "messages": [], "n": 0}),
    ("/v1/completions", {"model": "tiny", "prompt": [1, 2, 3], "logprobs": 1}),
    ("/v1/tokenize", {"model": "tiny", "prompt": ["a", "b"]}),
    ("/v1/detokenize", {"model": "tiny", "tokens": [[1, 2], [3]]}),
    ("/v1/embeddings", {"model": "m", "input": ["a", "b"]}),
    ("/v1/embeddings", {"model": "nobody", "input": [[1, 2], [3]]}),
    ("/v1/rerank", {"model": "m", "query": "a", "documents": ["b"]}),
    ("/parse/reasoning", {"reasoning_parser": "deepseek_r1", "text": "a</think>b"}),
    ("/workers", {"url": 5}),
]


@pytest.mark.parametrize(("path", "body"), ROUTES)
async def test_a_large_body_is_answered_like_a_small_one(
    path: str, body: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = json.dumps(body).encode()
    answers: list[tuple[int, bytes]] = []
    one = worker(lambda call: told({"data": [], "model": "m"}))
    async with relay_bench(tmp_path, w=one) as b, node() as surface:
        surface.parts.relays, surface.parts.embedder = b.relays, b.embedder
        for _ in range(2):
            answer = await ask(surface.port, "POST", path, raw, JSON)
            answers.append((answer.status, answer.body))
            monkeypatch.setattr(large_bodies, "LARGE_BYTES", 0)
            monkeypatch.setattr(generation, "LARGE_BYTES", 0)
    small, large = answers
    assert large[0] == small[0]
    assert _unnumbered(large[1]) == _unnumbered(small[1])
    assert any(one.name.startswith("smg-bodies") for one in threading.enumerate())


def _unnumbered(body: bytes) -> Any:
    """Return an answer without what counts up."""
    said = json.loads(body)
    for key in ("id", "created"):
        said.pop(key, None)
    return said
