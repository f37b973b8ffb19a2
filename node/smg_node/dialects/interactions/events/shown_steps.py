"""Shown steps: the house's items as steps of an interaction, as they came or as the model made them."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from smg_node.dialects.interactions.events.call_arguments import object_text
from smg_node.dialects.interactions.request.input_steps import OPAQUE
from smg_node.dialects.responses.items.item_document import ItemDoc

_Values = Mapping[str, Any]
_object: Final = msgspec.json.Decoder(dict[str, Any]).decode
_PART_KEYS: Final = ("mime_type", "resolution", "processing", "channels", "sample_rate")


def steps_of(items: Iterable[ItemDoc]) -> list[dict[str, Any]]:
    """Return these items as steps, one each."""
    return [step_of(item.values()) for item in items]


def step_of(values: _Values) -> dict[str, Any]:
    """Return the step of an item with these values."""
    kind = values["type"]
    if kind.startswith(OPAQUE) and type(values.get("step")) is dict:
        step: dict[str, Any] = values["step"]
        return step
    show = _SHOWN.get(kind)
    return {"type": kind} if show is None else show(values)


def _message(values: _Values) -> dict[str, Any]:
    parts = _parts(values, "content")
    if values.get("role") != "assistant":
        return {"type": "user_input", "content": [_content(part) for part in parts]}
    content = [_content(part) for part in parts if part.get("text") or part.get("refusal")]
    error = {"error": values["error"]} if values.get("error") is not None else {}
    return {"type": "model_output", "content": content, **error}


def _thought(values: _Values) -> dict[str, Any]:
    step: dict[str, Any] = {"type": "thought"}
    if values.get("signature") is not None:
        step["signature"] = values["signature"]
    if not values.get("hidden"):
        texts = [str(part.get("text", "")) for part in _parts(values, "content")]
        summary = [{"type": "text", "text": text} for text in texts if text]
        step |= {"summary": summary} if summary else {}
    return step


def _call(values: _Values) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": values.get("call_id", ""),
        "name": values.get("name", ""),
        "arguments": msgspec.Raw(object_text(str(values.get("arguments", ""))).encode()),
    }


def _result(values: _Values) -> dict[str, Any]:
    step = {"type": "function_result", "call_id": values.get("call_id", "")}
    step |= {key: values[key] for key in ("name", "is_error") if values.get(key) is not None}
    output = values.get("output")
    if type(output) is list:
        return {**step, "result": [_content(part) for part in _parts(values, "output")]}
    if values.get("form") == "object" and type(output) is str:
        return {**step, "result": _object(output)}
    return {**step, "result": output}


def _parts(values: _Values, key: str) -> list[_Values]:
    parts = values.get(key)
    return [part for part in parts if type(part) is dict] if type(parts) is list else []


def _content(part: _Values) -> dict[str, Any]:
    kind, kept = part.get("type"), {key: part[key] for key in _PART_KEYS if key in part}
    match kind:
        case "input_image":
            return {"type": "image", **_source(str(part.get("image_url", ""))), **kept}
        case "input_file":
            source = part.get("file_url") or part.get("file_data") or ""
            return {"type": "document", **_source(str(source)), **kept}
        case "input_audio":
            return {"type": "audio", "data": part.get("input_audio", {}).get("data", ""), **kept}
        case _:
            text = {"type": "text", "text": part.get("text") or part.get("refusal") or ""}
            annotations = part.get("annotations")
            return {**text, "annotations": annotations} if annotations else text


def _source(source: str) -> dict[str, str]:
    head, comma, data = source.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return {"data": data}
    return {"uri": source}


_SHOWN: Final[Mapping[str, Callable[[_Values], dict[str, Any]]]] = {
    "message": _message,
    "reasoning": _thought,
    "function_call": _call,
    "function_call_output": _result,
}
