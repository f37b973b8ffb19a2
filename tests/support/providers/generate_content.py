"""What vendors answer in generateContent, and what becomes of it when it is read."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.event_grammar import Grammar
from smg_node.core.generation.events import Begin, BlockEnd, Event, Fail, Finish, Usage
from smg_node.core.generation.opaque import SIGNATURE, Opaque
from smg_node.dialects.gemini.provider.dialect import GenerateContentApi
from smg_node.dialects.worker_errors import WorkerError

API: Final = GenerateContentApi()
BEGIN: Final = Begin("f" * 32, "m", 1, 0)
PROMPT: Final = 7
"""What the prompt is taken for if nobody says how long it is."""
USED: Final = {"promptTokenCount": 5, "candidatesTokenCount": 2, "totalTokenCount": 7}


def made_id(number: int) -> str:
    """Return the id of a call that came without one."""
    return f"call_{'f' * 32}_{number}"


def signed(data: str) -> Opaque:
    return Opaque("google", SIGNATURE, data)


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"text": said, **more}


def thought(said: str, **more: Any) -> dict[str, Any]:
    return {"text": said, "thought": True, **more}


def call(name: str = "f", args: Any = None, signature: str = "", **more: Any) -> dict[str, Any]:
    told = {"functionCall": {"name": name, **({} if args is None else {"args": args}), **more}}
    return {**told, "thoughtSignature": signature} if signature else told


def piece(name: str = "", pieces: Sequence[dict[str, Any]] = (), **more: Any) -> dict[str, Any]:
    """Return a piece of a call whose arguments are streamed."""
    told = {**({"name": name} if name else {}), **({"partialArgs": list(pieces)} if pieces else {})}
    return {"functionCall": {**told, **more}}


def candidate(
    *parts: dict[str, Any], finish: str = "", index: int = 0, **more: Any
) -> dict[str, Any]:
    content = {"role": "model", **({"parts": list(parts)} if parts else {})}
    reason = {"finishReason": finish} if finish else {}
    return {"content": content, **reason, "index": index, **more}


def answer(*parts: dict[str, Any], finish: str = "", **more: Any) -> dict[str, Any]:
    """Return an answer of one candidate, or an event of it."""
    return {"candidates": [candidate(*parts, finish=finish)], **more}


def sse(*answers: dict[str, Any]) -> bytes:
    """Return a stream as these vendors frame it."""
    return b"".join(b"data: " + json.dumps(one).encode() + b"\r\n\r\n" for one in answers)


def heard(pieces: Iterable[bytes], *, whole: bool = False, **more: Any) -> list[Event]:
    """Return all events of an answer; what goes wrong with it is its last one. Whatever they are, they are in order."""
    listener, out = API.listen(BEGIN, prompt_tokens=PROMPT, **more), list[Event]()
    try:
        for each in pieces:
            (listener.feed_whole if whole else listener.feed)(each, out)
        listener.end(out)
    except SmgError as error:
        listener.fail(error, out)
    except WorkerError as error:
        said = f"{error.status} {error.code} {error.message}"
        listener.fail(SmgError(ErrorKind.UPSTREAM_FAILED, said, code="vendor"), out)
    grammar = Grammar(1)
    grammar.feed(out)
    assert grammar.over
    return out


def blocks_in(events: Sequence[Event]) -> list[tuple[Any, ...]]:
    """Return kind, text, and what else there is of each block."""
    found = [event for event in events if isinstance(event, BlockEnd)]
    return [
        (
            one.kind,
            one.text,
            *((one.name, one.call_id) if one.kind == "call" else ()),
            *(each.data for each in one.opaque),
        )
        for one in found
    ]


def finish_in(events: Sequence[Event]) -> str:
    [finish] = [event for event in events if isinstance(event, Finish)]
    return finish.reason


def usage_in(events: Sequence[Event]) -> Usage:
    [usage] = [event for event in events if isinstance(event, Usage)]
    return usage


def failure_in(events: Sequence[Event]) -> SmgError:
    assert isinstance(events[-1], Fail)
    return events[-1].error
