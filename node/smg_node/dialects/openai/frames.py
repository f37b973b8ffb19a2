"""Frames: precomputed bytes of SSE frames, in which only a text changes from token to token.

A frame is one line of JSON after `data: `, then an empty line. The JSON is put together from bytes made
once per stream, once per choice and kind of delta, and once per token.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from smg_node.core.generation.events import Begin, Usage
from smg_node.dialects.openai.view import View

DONE: Final = b"data: [DONE]\n\n"

encode_json: Final = msgspec.json.Encoder().encode

# Legal inside a JSON string, but many clients split a stream into lines as Python's str.splitlines does.
_LINE_BREAKS: Final = (("\u2028", rb"\u2028"), ("\u2029", rb"\u2029"), ("\u0085", rb"\u0085"))


def json_text(text: str) -> bytes:
    """Return `text` as a JSON string, in UTF-8, without any character that a parser takes for a
    line end.
    """
    if text.isascii():
        return encode_json(text)
    return _one_line(text, encode_json(text))


def _one_line(text: str, encoded: bytes) -> bytes:
    for character, escape in _LINE_BREAKS:
        if character in text:
            encoded = encoded.replace(character.encode(), escape)
    return encoded


def json_line(value: Any) -> bytes:
    """Return any value as one line of JSON, as `json_text` does for text."""
    encoded = encode_json(value)
    return encoded if encoded.isascii() else _one_line(encoded.decode(), encoded)


def answer_id(kind: str, begin: Begin) -> str:
    """Return the id of an answer of this kind: the generation's own, with the prefix clients know."""
    return _PREFIXES[kind] + begin.id


_PREFIXES: Final = {
    "chat.completion": "chatcmpl-",
    "chat.completion.chunk": "chatcmpl-",
    "text_completion": "cmpl-",
}


def chunk_opening(kind: str, begin: Begin, view: View) -> bytes:
    """Return what every frame of a stream starts with, up to the bracket that opens its choices."""
    fields = _opening_behind_id(
        kind, begin.created_s, begin.model, begin.fingerprint, view.service_tier
    )
    return b'data: {"id":%b%b' % (json_text(answer_id(kind, begin)), fields)


@lru_cache(maxsize=256)
def _opening_behind_id(
    kind: str, created_s: int, model: str, fingerprint: str | None, tier: bool
) -> bytes:
    """Return the part that all streams of a second and a model have in common."""
    return b',"object":%b,"created":%d,"model":%b,"system_fingerprint":%b%b,"choices":[' % (
        json_text(kind),
        created_s,
        json_text(model),
        b"null" if fingerprint is None else json_text(fingerprint),
        b',"service_tier":"default"' if tier else b"",
    )


def chunk_closing(view: View) -> bytes:
    """Return what a frame ends with, from the bracket that closes its choices, if usage does not change."""
    return b'],"usage":null}\n\n' if view.include_usage else b"]}\n\n"


def usage_closing(prompt_tokens: int, completion_tokens: int) -> bytes:
    """Return the end of a frame that has the usage so far."""
    return b'],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}\n\n' % (
        prompt_tokens,
        completion_tokens,
        prompt_tokens + completion_tokens,
    )


def usage_object(usage: Usage) -> dict[str, Any]:
    """Return the `usage` of an answer."""
    details = {"cached_tokens": usage.cached_tokens}
    if usage.cache_write_tokens:
        details["cache_write_tokens"] = usage.cache_write_tokens
    if usage.image_tokens:
        details["image_tokens"] = usage.image_tokens
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": details,
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def answer_body(
    kind: str, begin: Begin, choices: list[dict[str, Any]], usage: Usage, view: View
) -> dict[str, Any]:
    """Return an unstreamed answer around its choices."""
    body: dict[str, Any] = {
        "id": answer_id(kind, begin),
        "object": kind,
        "created": begin.created_s,
        "model": begin.model,
        "choices": choices,
        "usage": usage_object(usage),
        "system_fingerprint": begin.fingerprint,
    }
    if view.service_tier:
        body["service_tier"] = "default"
    if view.metadata is not None:
        metadata: Mapping[str, str] = view.metadata
        body["metadata"] = metadata
    return body


def bare_answer_body(
    kind: str, begin: Begin, text: str, reason: str, usage: Usage, choice: bytes
) -> bytes:
    """Return the bytes of an answer whose one choice is a text: as `answer_body` of a bare view, 1 us instead of 4.

    `choice` is that choice, with places for its text and its reason to finish.
    """
    return _BARE_ANSWER % (
        encode_json(answer_id(kind, begin)),
        kind.encode(),
        begin.created_s,
        encode_json(begin.model),
        choice % (encode_json(text), encode_json(reason)),
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.prompt_tokens + usage.completion_tokens,
        usage.cached_tokens,
        usage.reasoning_tokens,
        encode_json(begin.fingerprint),
    )


USAGE: Final = (
    b'{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,'
    b'"prompt_tokens_details":{"cached_tokens":%d},'
    b'"completion_tokens_details":{"reasoning_tokens":%d}}'
)
"""What `usage_object` says, with places for the numbers; of tokens written into a cache it says nothing."""
_BARE_ANSWER: Final = (
    b'{"id":%b,"object":"%b","created":%d,"model":%b,"choices":[%b],"usage":'
    + USAGE
    + b',"system_fingerprint":%b}'
)
