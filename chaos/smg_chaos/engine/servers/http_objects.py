"""HTTP objects of an OpenAI server: prompts to ids, ids to text, and the JSON objects of its
answers. Pure.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from struct import pack
from typing import Any, Final

import msgspec

from smg_chaos.engine.scripts.bundle import Bundle

DIMENSIONS: Final = 8
_CREATED_S: Final = 1_700_000_000


def frame(value: Mapping[str, Any]) -> bytes:
    """Return an object as one event of a stream."""
    return b"data: " + msgspec.json.encode(value) + b"\n\n"


class Words:
    """Objects of one server; `model` is its name for the served model."""

    def __init__(self, model: str, bundle: Bundle) -> None:
        self._model = model
        self._bundle = bundle

    def prompt_ids(self, body: Mapping[str, Any], *, chat: bool) -> Sequence[int]:
        """Return the prompt's ids, by a plain template for conversations."""
        if not chat:
            prompt = body.get("prompt", "")
            if isinstance(prompt, list) and all(isinstance(one, int) for one in prompt):
                return prompt
            return self._bundle.encode(str(prompt))
        lines = [
            f"{turn.get('role', '')}: {turn.get('content', '')}\n"
            for turn in body.get("messages", [])
            if isinstance(turn, dict)
        ]
        return self._bundle.encode("".join(lines) + "assistant:")

    def text(self, ids: Sequence[int]) -> str:
        """Return the text of an answer so far."""
        return self._bundle.decode(ids)

    def models(self, context: int) -> Mapping[str, Any]:
        """Return the page of models."""
        row = {
            "id": self._model,
            "object": "model",
            "created": _CREATED_S,
            "owned_by": "vllm",
            "root": f"/models/{self._model}",
            "parent": None,
            "max_model_len": context,
        }
        return {"object": "list", "data": [row]}

    def piece(
        self, name: str, at: int, text: str, finish: str | None, *, chat: bool
    ) -> Mapping[str, Any]:
        """Return one event of a stream."""
        said: Mapping[str, Any] = {"delta": {"content": text}} if chat else {"text": text}
        choice = {"index": at, **said, "finish_reason": finish}
        return {**self._head(name, chat=chat, streamed=True), "choices": [choice]}

    def usage_piece(self, name: str, usage: Mapping[str, Any], *, chat: bool) -> Mapping[str, Any]:
        """Return the event with the usage."""
        head = self._head(name, chat=chat, streamed=True)
        return {**head, "choices": [], "usage": usage}

    def whole(
        self,
        name: str,
        texts: Sequence[tuple[str, str | None]],
        usage: Mapping[str, Any],
        *,
        chat: bool,
    ) -> Mapping[str, Any]:
        """Return a whole answer as one object."""
        choices = [
            {
                "index": at,
                **({"message": {"role": "assistant", "content": text}} if chat else {"text": text}),
                "finish_reason": finish,
            }
            for at, (text, finish) in enumerate(texts)
        ]
        head = self._head(name, chat=chat, streamed=False)
        return {**head, "choices": choices, "usage": usage}

    def _head(self, name: str, *, chat: bool, streamed: bool) -> Mapping[str, Any]:
        kind = "text_completion"
        if chat:
            kind = "chat.completion.chunk" if streamed else "chat.completion"
        return {"id": name, "object": kind, "created": _CREATED_S, "model": self._model}


def metrics_page(model: str, running: int, waiting: int) -> str:
    """Return a page of metrics with vLLM's names."""
    label = f'{{engine="0",model_name="{model}"}}'
    return (
        "# TYPE vllm:num_requests_running gauge\n"
        f"vllm:num_requests_running{label} {running}.0\n"
        "# TYPE vllm:num_requests_waiting gauge\n"
        f"vllm:num_requests_waiting{label} {waiting}.0\n"
        "# TYPE vllm:kv_cache_usage_perc gauge\n"
        f"vllm:kv_cache_usage_perc{label} 0.0\n"
    )


def embedded(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the answer of `/v1/embeddings`."""
    value = body.get("input")
    inputs = (
        value if isinstance(value, list) and value and not isinstance(value[0], int) else [value]
    )
    packed = body.get("encoding_format") == "base64"
    rows = [
        {
            "object": "embedding",
            "index": at,
            "embedding": (
                b64encode(pack(f"<{DIMENSIONS}f", *vector_of(one))).decode()
                if packed
                else vector_of(one)
            ),
        }
        for at, one in enumerate(inputs)
    ]
    tokens = sum(max(1, len(str(one)) // 4) for one in inputs)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": rows, "model": body.get("model"), "usage": usage}


def vector_of(text: object) -> list[float]:
    """Return the embedding of a text: without meaning, and always the same."""
    digest = blake2b(msgspec.json.encode(text), digest_size=DIMENSIONS).digest()
    return [byte / 256 for byte in digest]


def reranked(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the answer of `/v1/rerank`: documents that share more words with the query first."""
    query = set(str(body.get("query", "")).split())
    documents = [str(one) for one in body.get("documents", [])]
    scores = [len(query & set(one.split())) / max(1, len(query)) for one in documents]
    best = sorted(range(len(documents)), key=lambda at: (-scores[at], at))
    results = [
        {"index": at, "document": {"text": documents[at]}, "relevance_score": scores[at]}
        for at in best[: body.get("top_n") or len(best)]
    ]
    return {"id": "rerank-1", "model": body.get("model"), "results": results}


def classified(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the answer of `/v1/classify`."""
    value = body.get("input")
    inputs = value if isinstance(value, list) else [value]
    rows = [
        {
            "index": at,
            "label": "long" if len(str(one)) > 20 else "short",
            "probs": [1.0, 0.0],
            "num_classes": 2,
        }
        for at, one in enumerate(inputs)
    ]
    return {"object": "list", "data": rows, "model": body.get("model")}
