"""Strict judge of bodies for OpenAI's two APIs: the official client's own types without their tolerance, and known rules.

Those types let unknown keys pass, and validate lists only when somebody walks them. Here neither is so.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

_TYPES: Mapping[str, Any] = {
    "chat": CompletionCreateParamsStreaming,
    "responses": ResponseCreateParamsStreaming,
}


def refusal(api: str, body: Mapping[str, Any]) -> str:
    """Return why the API would refuse a body, "" if it would not."""
    try:
        _validator(api).validate_python(dict(body))
    except ValidationError as error:
        return str(error)[:2_000]
    items = body["messages"] if api == "chat" else body["input"]
    return _unpaired(list(_calls(items)), list(_results(items)), items)


@lru_cache(maxsize=2)
def _validator(api: str) -> SchemaValidator:
    schema: Any = _strict(TypeAdapter(_TYPES[api]).core_schema)
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
        made["extra_behavior"] = "forbid"
    elif kind == "model":
        named = {"ref": made["ref"]} if "ref" in made else {}
        return {"type": "is-instance", "cls": made["cls"], **named}
    if kind in ("str", "int", "bool", "list", "dict"):
        made["strict"] = True
    return made


# ── Rules ────────────────────────────────────────────────────────────────────


def _calls(items: list[dict[str, Any]]) -> Any:
    for item in items:
        if item.get("type") == "function_call":
            yield item["call_id"]
        yield from (call["id"] for call in item.get("tool_calls", ()))


def _results(items: list[dict[str, Any]]) -> Any:
    for item in items:
        if item.get("type") == "function_call_output":
            yield item["call_id"]
        elif item.get("role") == "tool":
            yield item["tool_call_id"]


def _unpaired(calls: list[str], results: list[str], items: list[dict[str, Any]]) -> str:
    if not items:
        return "there is nothing to answer"
    if len(set(calls)) != len(calls):
        return "two calls have one id"
    if calls != results:
        return f"calls {calls} have results {results}"
    if any(not 0 < len(call_id) <= 64 for call_id in calls):
        return "an id has no or too many characters"
    last = items[-1]
    return "a thought leads to nothing" if last.get("type") == "reasoning" else ""
