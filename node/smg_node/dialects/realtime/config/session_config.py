"""Session config: what a client has said of its session so far, what that makes of an answer, and how it is shown. Pure.

Updates are merged, field by field at any depth: what one leaves out stays, null clears. The merged whole is read anew, and
is taken as a whole or not at all.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from smg_node.core.errors import SmgError, invalid
from smg_node.core.json_cursor import Cursor, Problems
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.realtime.config.audio_config import check_audio, shown_audio
from smg_node.dialects.realtime.config.generation_parameters import (
    INFINITE,
    NAMES,
    read_parameters,
    unlike,
)
from smg_node.dialects.realtime.config.retention import AUTO, Retention
from smg_node.dialects.responses.request.response_request import ResponseRequest

KIND: Final = "realtime"
CONFIG_BYTES_MAX: Final = 4 << 20
"""A merged session is no longer; every update may add to it."""
GIVEN: Final = frozenset({"type", "model", "id", "object", "expires_at"})
"""What a client may send and cannot change."""
_KNOWN: Final = (*NAMES, "audio", "truncation", "tracing", "include", *sorted(GIVEN))
_INCLUDED_MAX: Final = 16
_encode: Final = msgspec.json.Encoder().encode


def merged(said: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was said with a change: objects are merged, unless their types differ; null takes away."""
    whole = dict(said)
    for key, value in change.items():
        old = whole.get(key)
        if value is None:
            whole.pop(key, None)
        elif type(value) is dict and type(old) is dict and _alike(old, value):
            whole[key] = merged(old, value)
        else:
            whole[key] = value
    return whole


def _alike(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    return "type" not in new or new["type"] == old.get("type")


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """What is in force. `said` is all that the client said and may change; `ask` is an answer's request without items.

    `truncation` is None where nothing may be left out.
    """

    said: Mapping[str, Any]
    ask: ResponseRequest
    truncation: Retention | None

    def shown(self, *, session_id: str, expires_s: int) -> dict[str, Any]:
        """Return the public object."""
        said = self.said
        reasoning = {"reasoning": said["reasoning"]} if said.get("reasoning") else {}
        extras = {key: said[key] for key in ("temperature", "top_p") if key in said}
        return {
            "type": KIND,
            "object": "realtime.session",
            "id": session_id,
            "model": self.ask.model,
            "output_modalities": ["text"],
            "instructions": said.get("instructions", ""),
            "tools": [_bare(tool) for tool in said.get("tools", ())],
            "tool_choice": said.get("tool_choice", "auto"),
            "max_output_tokens": said.get("max_output_tokens", INFINITE),
            "parallel_tool_calls": said.get("parallel_tool_calls", True),
            **reasoning,
            "truncation": said.get("truncation", "auto"),
            "tracing": said.get("tracing"),
            "prompt": None,
            "include": said.get("include"),
            "expires_at": expires_s,
            "audio": shown_audio(said),
            **extras,
        }


def _bare(tool: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in tool.items() if value is not None}


def first_config(model: str, options: ReaderOptions, *, routing_key: str) -> SessionConfig:
    """Return the config of a session of which nothing was said yet."""
    nothing = Cursor({}, Problems())
    ask = read_parameters(nothing, options, model=model, routing_key=routing_key)
    return SessionConfig({}, ask, AUTO)


def updated(config: SessionConfig, change: Cursor, options: ReaderOptions) -> SessionConfig:
    """Return the config after an update, the object that `change` stands on. INVALID_REQUEST names all that is wrong."""
    change.word("type", (KIND,), required=True)
    # Another model than the URL's is what most clients name, and means nothing.
    change.text("model")
    change.only(_KNOWN)
    said = merged(
        config.said, {key: change.values[key] for key in change.values if key not in GIVEN}
    )
    said = {key: said[key] for key in said if key in _KNOWN}
    whole = change.standing_for(said)
    ask = read_parameters(whole, options, model=config.ask.model, routing_key=_key(config))
    check_audio(whole)
    truncation = _truncation(whole)
    _check_hints(whole)
    change.problems.check()
    if len(_encode(said)) > CONFIG_BYTES_MAX:
        raise _too_large(change.path())
    return SessionConfig(said, ask, truncation)


def _key(config: SessionConfig) -> str:
    return config.ask.routing_key or ""


def _truncation(cursor: Cursor) -> Retention | None:
    value = cursor.values.get("truncation")
    if type(value) is str or value is None:
        word = cursor.word("truncation", ("auto", "disabled"))
        return None if word == "disabled" else AUTO
    if type(value) is not dict:
        why = unlike(value, "a string or an object")
        cursor.problem("truncation", why, "invalid_type")
        return AUTO
    rule = cursor.object("truncation")
    assert rule is not None, "it is an object"
    rule.only(("type", "retention_ratio", "token_limits"))
    rule.word("type", ("retention_ratio",), required=True)
    rule.raw("retention_ratio", required=True)
    ratio = rule.number("retention_ratio", low=0, high=1)
    limits = rule.object("token_limits")
    if limits is None:
        return Retention(1.0 if ratio is None else ratio)
    limits.only(("post_instructions",))
    return Retention(
        1.0 if ratio is None else ratio, limits.integer("post_instructions", low=1, high=2**31 - 1)
    )


def _check_hints(cursor: Cursor) -> None:
    """Check what has no effect, and is shown again."""
    tracing = cursor.values.get("tracing")
    if type(tracing) is str:
        cursor.word("tracing", ("auto",))
    elif type(tracing) is dict:
        trace = cursor.object("tracing")
        assert trace is not None, "it is an object"
        trace.text("group_id")
        trace.text("workflow_name")
    elif tracing is not None:
        why = unlike(tracing, "a string or an object")
        cursor.problem("tracing", why, "invalid_type")
    included = cursor.array("include", at_most=_INCLUDED_MAX)
    names = cursor.elements("include", str, "a string", included or ())
    for index, name in enumerate(names or ()):
        if name != "item.input_audio_transcription.logprobs":
            cursor.problem("include", "is nothing that can be included", index=index)


def _too_large(where: str) -> SmgError:
    return invalid(f"a session may have at most {CONFIG_BYTES_MAX} bytes of JSON", where)
