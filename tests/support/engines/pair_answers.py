"""What is asked of pairs of simulated engines, and what their answers say, for tests with real processes."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from support.answers.sse_client import read_frames
from support.http.chat_client import CHAT, chat
from support.http.raw_http import Response, ask
from support.processes.simulated_engines import Simulated

COMPLETIONS: Final = "/v1/completions"
ALONE: Final = "alone"
MAKES: Final[Mapping[str, Sequence[str]]] = {
    "sglang": ("--contract", "sglang"),
    "tokenspeed": ("--contract", "tokenspeed"),
    "nixl": ("--contract", "vllm", "--kv-connector", "nixl"),
    "mooncake": ("--contract", "vllm", "--kv-connector", "mooncake"),
    "store": ("--contract", "vllm", "--kv-connector", "store"),
}
"""How pairs come together; the model of each is called like it."""
SPEAK: Final = ("--script", "following", "--itl-ms", "2")
BLOCK: Final = 64
"""Tokens; the largest that an index works with."""
READY_S: Final = 60.0
ANY_PORT: Final = ("--bootstrap-port", "0")
QUICK: Final = ("--workers.probe-interval-s", "0.5", "--workers.retry-s", "0.2")


def urls_of(engines: Simulated) -> list[str]:
    """Return the URLs of an engine's workers, with the port for their partners where vLLM cannot tell it."""
    rooms = re.findall(r" contract=vllm .* bootstrap=(\d+)", engines.process.said())
    if not rooms:
        return [f"grpc://{address}" for address in engines.addresses]
    return [
        f"grpc://{address}?bootstrap_port={room}"
        for address, room in zip(engines.addresses, rooms, strict=True)
    ]


def body_of(path: str, model: str, **fields: Any) -> dict[str, Any]:
    """Return a short request for either API; `fields` are added to it."""
    body = chat(model) if path == CHAT else {"model": model, "prompt": "Once upon a time"}
    return {**body, "max_tokens": 24, "temperature": 0, **fields}


def whole_of(answer: Response) -> tuple[object, ...]:
    """Return what an unstreamed answer says, less what differs each time."""
    assert answer.status == 200, answer.body
    told = answer.json()
    return told["choices"], counted(told["usage"])


def streamed_of(answer: Response) -> tuple[object, ...]:
    """Return what the chunks of a streamed answer add up to."""
    assert answer.status == 200, answer.body
    streamed = read_frames(answer.body)
    assert streamed.done
    texts: dict[int, str] = {}
    rows: dict[int, list[Any]] = {}
    finishes: dict[int, list[Any]] = {}
    for choice in (one for chunk in streamed.chunks for one in chunk["choices"]):
        index = choice["index"]
        said = choice["delta"].get("content", "") if "delta" in choice else choice["text"]
        texts[index] = texts.get(index, "") + said
        told = choice["logprobs"] or {}
        rows.setdefault(index, []).extend(told.get("content") or told.get("tokens") or ())
        if choice["finish_reason"] is not None:
            finishes.setdefault(index, []).append(choice["finish_reason"])
    return texts, rows, finishes, counted(streamed.chunks[-1]["usage"])


def counted(usage: Mapping[str, Any]) -> tuple[int, ...]:
    """Return what was counted; cached tokens are another matter each time."""
    return tuple(usage[f"{what}_tokens"] for what in ("prompt", "completion", "total"))


def cached_of(answer: Response) -> int:
    """Return how many tokens of its prompt were cached."""
    assert answer.status == 200, answer.body
    cached = answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert isinstance(cached, int)
    return cached


async def steps_of(port: int, answer: Response) -> list[dict[str, Any]]:
    """Return what the node says happened to a request."""
    request = answer.headers["x-request-id"]
    told = (await ask(port, "GET", f"/v1/cluster/explain/{request}")).json()
    steps = told["journeys"][0]["steps"]
    assert isinstance(steps, list)
    return steps


async def chosen(port: int, answer: Response) -> list[tuple[str, str]]:
    """Return who was chosen for what, in order."""
    steps = await steps_of(port, answer)
    return [(step["role"], step["worker"]) for step in steps if step["step"] == "chosen"]
