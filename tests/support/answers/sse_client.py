"""Reads what a presenter streamed, as a strict client would."""

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Streamed:
    """The JSON objects of a stream, and whether it ended with `[DONE]`."""

    chunks: list[dict[str, Any]] = field(default_factory=list)
    done: bool = False


def read_frames(raw: bytes) -> Streamed:
    """Return the frames of a stream; every one must be a single `data:` line."""
    assert raw.endswith(b"\n\n") or not raw
    streamed = Streamed()
    for frame in raw.split(b"\n\n")[:-1]:
        assert not streamed.done, "nothing follows [DONE]"
        assert len(frame.decode().splitlines()) == 1, f"not one line for every client: {frame!r}"
        name, _, value = frame.partition(b": ")
        assert name == b"data"
        if value == b"[DONE]":
            streamed.done = True
        else:
            streamed.chunks.append(json.loads(value))
    return streamed


@dataclass
class Whole:
    """One choice, put together from its chunks; the field names are those of the answer."""

    index: int
    role: str = ""
    content: str = ""
    refusal: str = ""
    reasoning: dict[str, str] = field(default_factory=dict)
    details: list[dict[str, Any]] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    function_call: dict[str, str] | None = None
    logprobs: list[dict[str, Any]] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    finish_reason: str | None = None
    matched_stop: Any = None


def assemble_chat(chunks: list[dict[str, Any]], choices: int) -> list[Whole]:
    """Return the choices that the chunks of a chat add up to."""
    wholes = [Whole(index) for index in range(choices)]
    for chunk in chunks:
        for choice in chunk["choices"]:
            _add(wholes[choice["index"]], choice)
    return wholes


def _add(whole: Whole, choice: dict[str, Any]) -> None:
    assert whole.finish_reason is None, "nothing follows the finish"
    delta = choice["delta"]
    if "role" in delta:
        assert whole == Whole(choice["index"]), "the role comes first"
        whole.role = delta["role"]
    else:
        assert whole.role, "the role comes first"
    whole.content += delta.get("content", "")
    for name in ("reasoning_content", "reasoning"):
        if name in delta:
            whole.reasoning[name] = whole.reasoning.get(name, "") + delta[name]
    whole.refusal += delta.get("refusal", "")
    whole.details += delta.get("reasoning_details", ())
    for call in delta.get("tool_calls", ()):
        _add_call(whole, call)
    if "function_call" in delta:
        call = delta["function_call"]
        if whole.function_call is None:
            whole.function_call = {"name": call["name"], "arguments": ""}
        whole.function_call["arguments"] += call["arguments"]
    if choice["logprobs"] is not None:
        whole.logprobs += choice["logprobs"]["content"]
    whole.token_ids += choice.get("token_ids", ())
    whole.finish_reason = choice["finish_reason"]
    whole.matched_stop = choice.get("matched_stop")


def _add_call(whole: Whole, call: dict[str, Any]) -> None:
    if "id" in call:
        assert call["index"] == len(whole.calls), "calls count up"
        function = {"name": call["function"]["name"], "arguments": call["function"]["arguments"]}
        whole.calls.append({"id": call["id"], "type": call["type"], "function": function})
    else:
        whole.calls[call["index"]]["function"]["arguments"] += call["function"]["arguments"]
    if "extra_content" in call:
        whole.calls[call["index"]]["extra_content"] = call["extra_content"]
