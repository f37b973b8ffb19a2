"""Answers of vendors that speak Responses, as streams and whole, and what becomes of them when they are read."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.event_grammar import Grammar
from smg_node.core.generation.events import Begin, BlockEnd, Event, Fail, Finish, Usage
from smg_node.dialects.responses.provider.dialect import ResponsesProvider
from smg_node.dialects.worker_errors import WorkerError

API: Final = ResponsesProvider()
BEGIN: Final = Begin("f" * 32, "m", 1, 0)
PROMPT: Final = 7
"""What the prompt is taken for if nobody says how long it is."""
USED: Final = {
    "input_tokens": 9,
    "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 3},
    "total_tokens": 14,
}
Item = dict[str, Any]


def event(kind: str, **said: Any) -> bytes:
    """Return an event as OpenAI writes it."""
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), json.dumps({"type": kind, **said}).encode())


def said(text: str, **more: Any) -> Item:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": [part], **more}


def refused(text: str) -> Item:
    part = {"type": "refusal", "refusal": text}
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": [part]}


def thought(*summary: str, data: str | None = None, content: str | None = None) -> Item:
    told: Item = {"type": "reasoning", "id": "rs_1"}
    told["summary"] = [{"type": "summary_text", "text": text} for text in summary]
    if content is not None:
        told["content"] = [{"type": "reasoning_text", "text": content}]
    return told if data is None else {**told, "encrypted_content": data}


def call(name: str = "f", arguments: str = "{}", call_id: str = "call_1") -> Item:
    named = {"call_id": call_id, "name": name, "arguments": arguments}
    return {"type": "function_call", "id": "fc_1", "status": "completed", **named}


def searched() -> Item:
    return {"type": "web_search_call", "id": "ws_1", "action": {"type": "search"}}


def response(*items: Item, status: str = "completed", **more: Any) -> dict[str, Any]:
    """Return a whole response."""
    head = {"id": "resp_1", "object": "response", "model": "gpt-x", "error": None}
    return {**head, "status": status, "output": list(items), "usage": USED, **more}


def _cut(text: str, width: int) -> list[str]:
    return [text[at : at + width] for at in range(0, len(text), width)]


def _inside(index: int, item: Item, width: int) -> Iterator[bytes]:
    """Yield what stands between the first and the last event of an item."""
    place = {"output_index": index, "item_id": item["id"]}
    if item["type"] == "function_call":
        for piece in _cut(item["arguments"], width):
            yield event("response.function_call_arguments.delta", **place, delta=piece)
        yield event("response.function_call_arguments.done", **place, arguments=item["arguments"])
        return
    words = {
        "output_text": ("output_text", "text", "content_index"),
        "refusal": ("refusal", "refusal", "content_index"),
        "summary_text": ("reasoning_summary_text", "text", "summary_index"),
        "reasoning_text": ("reasoning_text", "text", "content_index"),
    }
    for number, part in enumerate([*item.get("summary", ()), *item.get("content", ())]):
        word, key, numbered = words[part["type"]]
        at = {**place, numbered: number}
        for piece in _cut(part[key], width):
            yield event(f"response.{word}.delta", **at, delta=piece)
        yield event(f"response.{word}.done", **at, **{key: part[key]})


def stream(*items: Item, width: int = 3, status: str = "completed", **more: Any) -> bytes:
    """Return the stream of a response."""
    begun = response(status="in_progress")
    told = [
        event("response.created", response=begun),
        event("response.in_progress", response=begun),
    ]
    bare = {"content": [], "summary": [], "arguments": ""}
    for index, item in enumerate(items):
        added = {name: bare.get(name, value) for name, value in item.items()}
        added.pop("encrypted_content", None)
        told.append(event("response.output_item.added", output_index=index, item=added))
        told += _inside(index, item, width)
        told.append(event("response.output_item.done", output_index=index, item=item))
    whole = response(*items, status=status, **more)
    return b"".join((*told, event(f"response.{status}", response=whole)))


def heard(
    pieces: Iterable[bytes], *, whole: bool = False, issuer: str = "", **more: Any
) -> list[Event]:
    """Return all events of an answer; what goes wrong with it is its last one. Whatever they are, they are in order."""
    api = ResponsesProvider(issuer)
    listener, out = api.listen(BEGIN, prompt_tokens=PROMPT, **more), list[Event]()
    try:
        for each in pieces:
            (listener.feed_whole if whole else listener.feed)(each, out)
        listener.end(out)
        assert listener.finished
    except SmgError as error:
        listener.fail(error, out)
    except WorkerError as error:
        told = f"{error.status} {error.code}: {error.message}"
        listener.fail(SmgError(ErrorKind.UPSTREAM_FAILED, told), out)
    grammar = Grammar(1)
    grammar.feed(out)
    assert grammar.over
    return out


def whole_of(*items: Item, **more: Any) -> list[Event]:
    return heard([json.dumps(response(*items, **more)).encode()], whole=True)


def blocks_in(events: Sequence[Event]) -> list[tuple[Any, ...]]:
    """Return kind, text, and what else there is of each block."""
    found = [one for one in events if isinstance(one, BlockEnd)]
    return [
        (
            one.kind,
            one.text,
            *((one.name, one.call_id) if one.kind == "call" else ()),
            *((state.issuer, state.kind, state.data, state.label) for state in one.opaque),
        )
        for one in found
    ]


def finish_in(events: Sequence[Event]) -> str:
    [found] = [one for one in events if isinstance(one, Finish)]
    return found.reason


def usage_in(events: Sequence[Event]) -> Usage:
    [found] = [one for one in events if isinstance(one, Usage)]
    return found


def failure_in(events: Sequence[Event]) -> str:
    last = events[-1]
    assert isinstance(last, Fail), last
    return last.error.message
