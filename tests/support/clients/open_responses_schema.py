"""What the public Open Responses schema (revision 2026-04-24) demands of objects and events, as one table.

A line is a shape: its keys, and of which kind their values are. A key that may be absent begins with `~`, a kind whose
value may be null ends with `?`, one in brackets is a list, `a|b` are the words there may be, and a kind that begins
with a capital is a shape or one of several. Keys that are not in the table are nobody's business here.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

_SHAPES: Final[Mapping[str, str]] = {
    "Response": """
        id text; object response; created_at whole; completed_at whole?; status text; incomplete_details Incomplete?;
        model text; previous_response_id text?; instructions text?; output [Item]; error Error?; tools [Tool];
        tool_choice ToolChoice; truncation auto|disabled; parallel_tool_calls flag; text Text; top_p number;
        presence_penalty number; frequency_penalty number; top_logprobs whole; temperature number;
        reasoning Reasoning?; usage Usage?; max_output_tokens whole?; max_tool_calls whole?; store flag;
        background flag; service_tier text; metadata anything; safety_identifier text?; prompt_cache_key text?""",
    "Compaction": "id text; object response.compaction; output [Item]; created_at whole; usage Usage",
    "Incomplete": "reason text",
    "Error": "code text; message text",
    "Usage": """
        input_tokens whole; output_tokens whole; total_tokens whole; input_tokens_details InputDetails;
        output_tokens_details OutputDetails""",
    "InputDetails": "cached_tokens whole",
    "OutputDetails": "reasoning_tokens whole",
    "Text": "format Format; ~verbosity low|medium|high",
    "Reasoning": """
        effort none|minimal|low|medium|high|xhigh?; summary concise|detailed|auto?""",
    "Tool": "type function; name text; description text?; parameters object?; strict flag?",
    # ── Items ──
    "Message": """
        type message; id text; status in_progress|completed|incomplete; role user|assistant|system|developer;
        content [Part]; ~phase commentary|final_answer""",
    "Call": """
        type function_call; id text; call_id text; name text; arguments text;
        status in_progress|completed|incomplete""",
    "CallOutput": """
        type function_call_output; id text; call_id text; output Said;
        status in_progress|completed|incomplete""",
    "Thought": "type reasoning; id text; summary [Part]; ~content [Part]; ~encrypted_content text",
    "Compacted": "type compaction; id text; encrypted_content text; ~created_by text",
    # ── Parts ──
    "OutputText": "type output_text; text text; annotations [Annotation]; ~logprobs [Row]",
    "InputImage": "type input_image; image_url text?; detail low|high|auto",
    "InputFile": "type input_file; ~filename text; ~file_url text",
    "Refusal": "type refusal; refusal text",
    "Words": "type input_text|text|summary_text|reasoning_text; text text",
    "Annotation": "type url_citation; url text; start_index whole; end_index whole; title text",
    "Row": "token text; logprob number; bytes [whole]; top_logprobs [TopRow]",
    "TopRow": "token text; logprob number; bytes [whole]",
    # ── What a text is to look like, and which tool is called ──
    "Plain": "type text|json_object",
    "Schema": "type json_schema; name text; description text?; schema object?; strict flag",
    "OneTool": "type function; ~name text",
    "AllowedTools": "type allowed_tools; tools [OneTool]; mode none|auto|required",
}
_PLACE: Final = "item_id text; output_index whole"
_PART_PLACE: Final = f"{_PLACE}; content_index whole"
_SUMMARY_PLACE: Final = f"{_PLACE}; summary_index whole"
_EVENTS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("created", "queued", "in_progress", "completed", "failed", "incomplete"),
        "response Response",
    ),
    "output_item.added": "output_index whole; item Item?",
    "output_item.done": "output_index whole; item Item?",
    "content_part.added": f"{_PART_PLACE}; part Part",
    "content_part.done": f"{_PART_PLACE}; part Part",
    "output_text.delta": f"{_PART_PLACE}; delta text; ~logprobs [Row]",
    "output_text.done": f"{_PART_PLACE}; text text; ~logprobs [Row]",
    "output_text.annotation.added": f"{_PART_PLACE}; annotation_index whole; annotation Annotation?",
    "refusal.delta": f"{_PART_PLACE}; delta text",
    "refusal.done": f"{_PART_PLACE}; refusal text",
    "reasoning.delta": f"{_PART_PLACE}; delta text",
    "reasoning.done": f"{_PART_PLACE}; text text",
    "reasoning_summary_part.added": f"{_SUMMARY_PLACE}; part Part",
    "reasoning_summary_part.done": f"{_SUMMARY_PLACE}; part Part",
    "reasoning_summary_text.delta": f"{_SUMMARY_PLACE}; delta text",
    "reasoning_summary_text.done": f"{_SUMMARY_PLACE}; text text",
    "function_call_arguments.delta": f"{_PLACE}; delta text",
    "function_call_arguments.done": f"{_PLACE}; arguments text",
}
# Which shape a value has is said by its type.
_CHOICES: Final[Mapping[str, Mapping[str, str]]] = {
    "Item": {
        "message": "Message",
        "function_call": "Call",
        "function_call_output": "CallOutput",
        "reasoning": "Thought",
        "compaction": "Compacted",
    },
    "Part": {
        "output_text": "OutputText",
        "input_image": "InputImage",
        "input_file": "InputFile",
        "refusal": "Refusal",
        **dict.fromkeys(("input_text", "text", "summary_text", "reasoning_text"), "Words"),
    },
    "Format": {"text": "Plain", "json_object": "Plain", "json_schema": "Schema"},
    "NamedTool": {"function": "OneTool", "allowed_tools": "AllowedTools"},
}
# A string, or something else.
_TEXT_OR: Final[Mapping[str, tuple[str, str]]] = {
    "ToolChoice": ("none|auto|required", "NamedTool"),
    "Said": ("text", "[Part]"),
}
_PLAIN: Final[Mapping[str, Callable[[Any], bool]]] = {
    "text": lambda value: type(value) is str,
    "whole": lambda value: type(value) is int,
    "number": lambda value: type(value) in (int, float),
    "flag": lambda value: type(value) is bool,
    "object": lambda value: type(value) is dict,
    "anything": lambda value: True,
}


@dataclass(frozen=True, slots=True)
class Field:
    """One key of a shape."""

    name: str
    kind: str
    may_be_absent: bool


def _fields(line: str) -> tuple[Field, ...]:
    words = [part.split() for part in line.split(";")]
    return tuple(Field(name.lstrip("~"), kind, name.startswith("~")) for name, kind in words)


SHAPES: Final[Mapping[str, tuple[Field, ...]]] = {
    **{name: _fields(line) for name, line in _SHAPES.items()},
    **{
        f"response.{name}": _fields(f"type response.{name}; sequence_number whole; {line}")
        for name, line in _EVENTS.items()
    },
}
"""All shapes by name; events by their type."""

ITEM_TYPES: Final = frozenset(_CHOICES["Item"])


def wrong_with(kind: str, value: Any, where: str = "") -> list[str]:
    """Return what the schema has against a value of this kind, each with its place; nothing if all is well."""
    return list(_wrong(kind, value, where or kind))


def wrong_with_event(event: Mapping[str, Any]) -> list[str]:
    """Return what the schema has against an event of a stream."""
    kind = event.get("type")
    if type(kind) is not str or not kind.startswith("response.") or kind not in SHAPES:
        return [f"{kind!r} is no event"]
    return list(_wrong_shape(kind, event, kind))


def _wrong(kind: str, value: Any, where: str) -> Iterator[str]:
    if kind.endswith("?"):
        if value is not None:
            yield from _wrong(kind[:-1], value, where)
    elif kind.startswith("["):
        yield from _wrong_list(kind[1:-1], value, where)
    elif kind[0].isupper():
        yield from _wrong_named(kind, value, where)
    elif kind in _PLAIN:
        if not _PLAIN[kind](value):
            yield f"{where}: {value!r} is not {kind}"
    elif value not in kind.split("|"):
        yield f"{where}: {value!r} is not {kind}"


def _wrong_list(kind: str, value: Any, where: str) -> Iterator[str]:
    if type(value) is not list:
        yield f"{where}: {value!r} is no list"
        return
    for number, element in enumerate(value):
        yield from _wrong(kind, element, f"{where}[{number}]")


def _wrong_named(name: str, value: Any, where: str) -> Iterator[str]:
    if name in SHAPES:
        yield from _wrong_shape(name, value, where)
    elif name in _TEXT_OR:
        text, other = _TEXT_OR[name]
        yield from _wrong(text if type(value) is str else other, value, where)
    else:
        kind = value.get("type") if type(value) is dict else None
        shape = _CHOICES[name].get(kind) if type(kind) is str else None
        if shape is None:
            yield f"{where}: no {name} is of type {kind!r}"
        else:
            yield from _wrong_shape(shape, value, where)


def _wrong_shape(shape: str, value: Any, where: str) -> Iterator[str]:
    if type(value) is not dict:
        yield f"{where}: {value!r} is no object"
        return
    for field in SHAPES[shape]:
        if field.name in value:
            yield from _wrong(field.kind, value[field.name], f"{where}.{field.name}")
        elif not field.may_be_absent:
            yield f"{where}.{field.name}: is missing"
