"""What workers that speak Chat Completions stream, and what becomes of it when it is read."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.event_grammar import Grammar
from smg_node.core.generation.events import Begin, BlockEnd, Event, Fail, Finish, Usage
from smg_node.dialects.chat.listener import ChunkReader
from smg_node.dialects.worker_errors import WorkerError

BEGIN = Begin("1", "m", 1, 0)
DONE = b"data: [DONE]\n\n"
PROMPT = 7
"""What the prompt is taken for if nobody says how long it is."""


def event(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def chunk(finish: str | None = None, *, index: int = 0, **delta: Any) -> bytes:
    return event(
        {"model": "m", "choices": [{"index": index, "delta": delta, "finish_reason": finish}]}
    )


def call(
    index: int | None, arguments: str = "", *, name: str = "", call_id: str = ""
) -> dict[str, Any]:
    """Return a piece of a call, as one says it who leaves out what he has said."""
    function = {"arguments": arguments, **({"name": name} if name else {})}
    place = {} if index is None else {"index": index}
    return {**place, "function": function, **({"id": call_id} if call_id else {})}


def calls(*pieces: dict[str, Any]) -> bytes:
    return chunk(tool_calls=list(pieces))


def used(prompt: int = 5, answer: int = 3, **more: Any) -> bytes:
    usage = {"prompt_tokens": prompt, "completion_tokens": answer, **more}
    return event({"choices": [], "usage": usage})


def reader_of(**more: Any) -> ChunkReader:
    return ChunkReader(BEGIN, prompt_tokens=PROMPT, **more)


def read(pieces: Iterable[bytes], **more: Any) -> list[Event]:
    """Return all events of an answer; what goes wrong with it is its last one. Whatever they are, they are in order."""
    reader, out = reader_of(**more), list[Event]()
    try:
        for piece in pieces:
            reader.feed(piece, out)
        reader.end(out)
    except SmgError as error:
        reader.fail(error, out)
    except WorkerError as error:
        reader.fail(_error(error), out)
    grammar = Grammar(1)
    grammar.feed(out)
    assert grammar.over
    return out


def _error(error: WorkerError) -> SmgError:
    message = f"{error.status} {error.code}: {error.message}"
    return SmgError(ErrorKind.UPSTREAM_FAILED, message)


def blocks(events: Sequence[Event]) -> list[str]:
    """Return its blocks, one line each."""
    return [
        f"{one.kind} {one.name}({one.text})" if one.kind == "call" else f"{one.kind} {one.text}"
        for one in events
        if isinstance(one, BlockEnd)
    ]


def finish_of(events: Sequence[Event]) -> Finish:
    [found] = [one for one in events if isinstance(one, Finish)]
    return found


def usage_of(events: Sequence[Event]) -> Usage:
    [found] = [one for one in events if isinstance(one, Usage)]
    return found


def failure_of(events: Sequence[Event]) -> str:
    """Return what it failed with."""
    last = events[-1]
    assert isinstance(last, Fail), last
    return last.error.message
