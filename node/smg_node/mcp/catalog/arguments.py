"""Arguments between what a model sees and what a server takes, by an operator's rule for the tool. Pure.

Values stay the JSON text that the model wrote: no number passes through a float.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from smg_node.core.generation.call_arguments import without_halves
from smg_node.mcp.server_spec import ToolRule

_decode_fields: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode
_encode_sorted: Final = msgspec.json.Encoder(order="sorted").encode


def shown_schema(schema: Mapping[str, Any], rule: ToolRule) -> Mapping[str, Any]:
    """Return the schema of a tool's arguments as a model sees it: renamed, without those that are fixed."""
    if not (rule.rename or rule.fixed or rule.defaults):
        return schema
    names = {server: model for model, server in rule.rename.items()}
    shown = dict(schema)
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        shown["properties"] = {
            names.get(name, name): value
            for name, value in properties.items()
            if name not in rule.fixed
        }
    required = schema.get("required")
    if isinstance(required, list | tuple):
        shown["required"] = [
            names.get(name, name)
            for name in required
            if name not in rule.fixed and name not in rule.defaults
        ]
    return shown


def server_arguments(text: str, rule: ToolRule) -> str:
    """Return arguments as the server takes them, JSON text; unchanged where they are no object."""
    if not (rule.rename or rule.fixed or rule.defaults):
        return text
    try:
        fields = _decode_fields(text) if text.strip() else {}
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text
    taken: dict[str, Any] = dict(rule.defaults)
    for name, value in fields.items():
        taken[rule.rename.get(name, name)] = value
    taken.update(rule.fixed)
    return _encode(taken).decode()


def canonical_arguments(text: str) -> str:
    """Return a text that arguments of the same meaning share; what is no JSON stands for itself."""
    try:
        return _encode_sorted(_decode(text) if text.strip() else {}).decode()
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return without_halves(text)
