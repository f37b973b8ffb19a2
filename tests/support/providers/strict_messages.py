"""Strict judge of Messages bodies: the official client's own types without their tolerance, and rules that the API is known for.

Those types let unknown keys pass, and validate lists only when somebody walks them. Here neither is so.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

from anthropic.types.message_create_params import MessageCreateParamsStreaming
from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

_OLDER = {"temperature": (0, 1), "top_p": (0, 1), "top_k": (1, 10**9)}
"""Fields of older models, which the types have no longer, with their ranges."""
_ID = re.compile(r"[A-Za-z0-9_-]+\Z")
_THOUGHTS = ("thinking", "redacted_thinking")


def refusal(body: Mapping[str, Any]) -> str:
    """Return why the API would refuse a body, "" if it would not."""
    rest = dict(body)
    for name, (low, high) in _OLDER.items():
        value = rest.pop(name, low)
        if not isinstance(value, int | float) or not low <= value <= high:
            return f"{name} is out of range"
    try:
        _validator().validate_python(rest)
    except ValidationError as error:
        return str(error)[:2_000]
    return _broken_rule(body)


@lru_cache(maxsize=1)
def _validator() -> SchemaValidator:
    schema: Any = _strict(TypeAdapter(MessageCreateParamsStreaming).core_schema)
    return SchemaValidator(schema)


def _strict(schema: Any) -> Any:
    if isinstance(schema, list | tuple):
        return type(schema)(_strict(each) for each in schema)
    if not isinstance(schema, dict):
        return schema
    made = {key: _strict(value) for key, value in schema.items()}
    kind = made.get("type")
    if kind == "generator":
        made["type"] = "list"
    elif kind == "typed-dict":
        allows = (made.get("config") or {}).get("extra_fields_behavior") == "allow"
        made["extra_behavior"] = "allow" if allows else "forbid"
    elif kind == "model":
        # A block of an answer is no block of a request, even if it looks like one.
        named = {"ref": made["ref"]} if "ref" in made else {}
        return {"type": "is-instance", "cls": made["cls"], **named}
    if kind in ("str", "int", "bool", "float", "list", "dict"):
        made["strict"] = True
    return made


# ── Rules ────────────────────────────────────────────────────────────────────


def _broken_rule(body: Mapping[str, Any]) -> str:
    rules: tuple[Callable[[Mapping[str, Any]], str], ...] = (
        _turns, _texts, _calls, _ends, _thinking, _tools,
    )  # fmt: skip
    return next((why for rule in rules if (why := rule(body))), "")


def _blocks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _turns(body: Mapping[str, Any]) -> str:
    roles = [message["role"] for message in body["messages"]]
    if not roles or set(roles) == {"system"}:
        return "messages: at least one message is required"
    # A system message may stand between others.
    if any(one == other for one, other in pairwise(roles)):
        return "messages: roles must alternate"
    return "" if body["max_tokens"] >= 1 else "max_tokens must be at least 1"


def _texts(body: Mapping[str, Any]) -> str:
    holders = [*body["messages"], {"content": body.get("system") or []}]
    for holder in holders:
        blocks = _blocks(holder)
        nested = [one.get("content") or [] for one in blocks if one["type"] == "tool_result"]
        for inside in (blocks, *(each for each in nested if isinstance(each, list))):
            if any(one["type"] == "text" and not one["text"].strip() for one in inside):
                return "text content blocks must have something in them"
    if any(not message["content"] for message in body["messages"]):
        return "all messages must have content"
    return (
        "stop_sequences" if any(not one.strip() for one in body.get("stop_sequences", ())) else ""
    )


def _calls(body: Mapping[str, Any]) -> str:
    waiting: list[str] = []
    seen: set[str] = set()
    for message in body["messages"]:
        blocks = _blocks(message)
        results = [one["tool_use_id"] for one in blocks if one["type"] == "tool_result"]
        if [one["type"] for one in blocks[: len(results)]] != ["tool_result"] * len(results):
            return "tool_result blocks must come first"
        if results != waiting:
            return "tool_use ids were found without tool_result blocks immediately after"
        waiting = [one["id"] for one in blocks if one["type"] == "tool_use"]
        if any(one in seen or not _ID.match(one) for one in waiting):
            return "tool_use ids must be unique and plain"
        seen.update(waiting)
    if seen and not body.get("tools"):
        return "requests with tool_use blocks must define tools"
    return "tool_use at the end" if waiting else ""


def _ends(body: Mapping[str, Any]) -> str:
    messages = body["messages"]
    for message in messages:
        if message["role"] == "assistant" and _blocks(message)[-1]["type"] in _THOUGHTS:
            return "the final block of an assistant's message cannot be a thought"
    last = _blocks(messages[-1])[-1]
    if messages[-1]["role"] == "assistant" and last["text"] != last["text"].rstrip():
        return "final assistant content cannot end with trailing whitespace"
    return ""


def _thinking(body: Mapping[str, Any]) -> str:
    thinking = body.get("thinking") or {"type": "disabled"}
    if thinking["type"] == "disabled":
        return ""
    if body.get("tool_choice", {}).get("type") in ("any", "tool"):
        return "thinking may not be enabled when tool_choice forces tool use"
    if body["messages"][-1]["role"] == "assistant":
        return "thinking cannot be combined with a prefilled answer"
    if any(name in body for name in _OLDER):
        return "thinking takes no sampling parameters"
    if thinking["type"] == "enabled":
        if not 1_024 <= thinking["budget_tokens"] < body["max_tokens"]:
            return "budget_tokens must be at least 1024 and less than max_tokens"
        return _unsigned_loop(body)
    return ""


def _unsigned_loop(body: Mapping[str, Any]) -> str:
    last = body["messages"][-1]
    if not any(one["type"] == "tool_result" for one in _blocks(last)):
        return ""
    before = _blocks(body["messages"][-2])
    return (
        ""
        if before[0]["type"] in _THOUGHTS
        else "a final assistant message must start with a thought"
    )


def _tools(body: Mapping[str, Any]) -> str:
    names = [tool["name"] for tool in body.get("tools", ())]
    choice = body.get("tool_choice")
    if choice is not None and not names:
        return "tool_choice may only be specified while providing tools"
    if choice is not None and choice["type"] == "tool" and choice["name"] not in names:
        return "tool_choice names no tool"
    if any(tool["input_schema"].get("type") != "object" for tool in body.get("tools", ())):
        return "input_schema.type must be object"
    return "tool names must be unique" if len(set(names)) < len(names) else ""
