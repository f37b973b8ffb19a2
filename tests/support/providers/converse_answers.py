"""Answers of Bedrock in pieces: frames of any form, and events of Converse as they come from there."""

import base64
import json
import struct
from collections.abc import Iterable, Mapping
from typing import Any
from zlib import crc32

from smg_node.core.generation.event_grammar import Grammar
from smg_node.core.generation.events import Begin, Event
from smg_node.dialects.converse.aws_frames import event_frame, exception_frame
from smg_node.dialects.converse.listener import ConverseListener

BEGIN = Begin("0" * 32, "model", 1_700_000_000, 7)
Header = tuple[str, int, bytes]
"""Name, type, and the bytes of the value."""


def raw_frame(headers: Iterable[Header], payload: bytes) -> bytes:
    """Return a frame with headers of any type, written after the format's description."""
    said = b"".join(
        bytes((len(name.encode()),)) + name.encode() + bytes((kind,)) + value
        for name, kind, value in headers
    )
    prelude = struct.pack("!II", 16 + len(said) + len(payload), len(said))
    prelude += struct.pack("!I", crc32(prelude))
    whole = prelude + said + payload
    return whole + struct.pack("!I", crc32(whole))


def sized(value: bytes) -> bytes:
    """Return bytes behind their length, as text and bytes stand in a header."""
    return struct.pack("!H", len(value)) + value


def event(kind: str, said: Mapping[str, Any]) -> bytes:
    """Return an event with Bedrock's padding."""
    return event_frame(kind, json.dumps({**said, "p": "abcdefgh"}).encode())


def failure(kind: str, said: Mapping[str, Any]) -> bytes:
    return exception_frame(kind, json.dumps(said).encode())


def delta(at: int, **said: Any) -> bytes:
    return event("contentBlockDelta", {"contentBlockIndex": at, "delta": said})


def text(at: int, *pieces: str) -> bytes:
    """Return a block of text: it has no start of its own."""
    return b"".join(delta(at, text=piece) for piece in pieces) + stopped(at)


def thought(at: int, *pieces: Mapping[str, str]) -> bytes:
    return b"".join(delta(at, reasoningContent=piece) for piece in pieces) + stopped(at)


def started(at: int, name: str, call_id: str, **more: Any) -> bytes:
    call = {"toolUseId": call_id, "name": name, **more}
    return event("contentBlockStart", {"contentBlockIndex": at, "start": {"toolUse": call}})


def call(at: int, name: str, call_id: str, *pieces: str, **more: Any) -> bytes:
    said = b"".join(delta(at, toolUse={"input": piece}) for piece in pieces)
    return started(at, name, call_id, **more) + said + stopped(at)


def stopped(at: int) -> bytes:
    return event("contentBlockStop", {"contentBlockIndex": at})


def ended(reason: str, **more: Any) -> bytes:
    return event("messageStop", {"stopReason": reason, **more})


def cost(prompt: int, answer: int, **more: Any) -> bytes:
    usage = {"inputTokens": prompt, "outputTokens": answer, "totalTokens": prompt + answer, **more}
    return event("metadata", {"usage": usage, "metrics": {"latencyMs": 5}})


ROLE = event("messageStart", {"role": "assistant"})


def whole_answer(*blocks: Mapping[str, Any], reason: str = "end_turn", **usage: int) -> bytes:
    """Return a body that is not streamed."""
    counts = {"inputTokens": 9, "outputTokens": 4, "totalTokens": 13, **usage}
    message = {"role": "assistant", "content": list(blocks)}
    said = {"output": {"message": message}, "stopReason": reason, "usage": counts}
    return json.dumps({**said, "metrics": {"latencyMs": 5}}).encode()


def listened(pieces: Iterable[bytes], **more: Any) -> list[Event]:
    """Return all events of a stream, which obey the grammar."""
    listener, out = ConverseListener(BEGIN, prompt_tokens=7, **more), list[Event]()
    for piece in pieces:
        listener.feed(piece, out)
    listener.end(out)
    return checked(out)


def listened_whole(body: bytes, **more: Any) -> list[Event]:
    """Return all events of a whole body, which obey the grammar."""
    listener, out = ConverseListener(BEGIN, prompt_tokens=7, **more), list[Event]()
    listener.feed_whole(body, out)
    listener.end(out)
    return checked(out)


def checked(out: list[Event]) -> list[Event]:
    grammar = Grammar(1)
    grammar.feed(out)
    assert grammar.over
    return out


def base64_of(data: str) -> str:
    return base64.b64encode(data.encode()).decode()
