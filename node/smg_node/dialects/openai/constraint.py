"""Constraint parameters: `response_format`, and the names that vLLM and SGLang have for grammars.

At most one of them may be given. Each becomes a `Constraint` whose value is text: a schema as compact
JSON in the client's order of keys, a pattern, a grammar, or a JSON list of choices.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import Constraint, ConstraintKind
from smg_node.core.json_cursor import Cursor
from smg_node.dialects.json_body import read_json
from smg_node.dialects.openai.json_schema import check_schema
from smg_node.dialects.openai.request_draft import Draft, Take, take_all

_encode: Final = msgspec.json.Encoder().encode


def take_response_format(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `response_format`; `text` asks for nothing."""
    wanted = cursor.object(key)
    if wanted is None:
        return
    kind = wanted.word("type", _FORMATS, required=True)
    if kind == "text":
        wanted.only(_TEXT)
    elif kind == "json_object":
        take_json_format(draft, wanted, cursor.path(key))
    elif kind == "json_schema":
        _take_named_schema(draft, wanted)
    elif kind == "structural_tag":
        _add(draft, cursor, key, "structural_tag", _encode(wanted.values).decode())


def take_json_format(draft: Draft, wanted: Cursor, where: str) -> None:
    """Take a format that asks for any JSON object, or for one of the `schema` beside it, as llama.cpp,
    Together and Fireworks have it.
    """
    wanted.only(_JSON_OBJECT)
    strict = wanted.flag("strict") or False
    if wanted.values.get("schema"):
        take_schema(draft, wanted, "schema", strict=strict)
    else:
        wanted.object("schema")
        draft.constraints.append(Constraint("json_object", "", where, strict=False))


def _take_named_schema(draft: Draft, wanted: Cursor) -> None:
    if wanted.has("schema") and not wanted.has("json_schema"):
        # Without its own object, as other servers and the Responses API have it; nobody needs its name.
        wanted.only(_FLAT_SCHEMA)
        wanted.text("name", characters_min=1, characters_max=64)
        take_description(wanted)
        take_schema(draft, wanted, "schema", strict=wanted.flag("strict") or False)
        return
    wanted.only(_JSON_SCHEMA)
    named = wanted.object("json_schema", required=True)
    if named is None:
        return
    named.only(_NAMED_SCHEMA)
    named.text("name", required=True, characters_min=1, characters_max=64)
    take_description(named)
    strict = named.flag("strict") or False
    if named.raw("schema", required=True) is not None:
        take_schema(draft, named, "schema", strict=strict)


def take_description(named: Cursor) -> None:
    """Take what a schema is for: no engine here is told, its fields' own descriptions go with the schema."""
    if named.text("description") is not None:
        named.ignore("description")


def take_schema(draft: Draft, cursor: Cursor, key: str, *, strict: bool = True) -> None:
    """Take a JSON Schema, as an object or as JSON text; without `strict` an engine does what it can."""
    schema = _object_or_text(cursor, key, "invalid_json_schema")
    if schema is None:
        return
    text = _encode(schema.values).decode()
    if len(text) <= draft.options.schema_max_bytes:
        check_schema(schema)
    _add(draft, cursor, key, "json_schema", text, strict=strict)


def take_tag(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take a structural tag, as an object or as JSON text."""
    tag = _object_or_text(cursor, key, "invalid_value")
    if tag is not None:
        _add(draft, cursor, key, "structural_tag", _encode(tag.values).decode())


def take_choice(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take a list of strings, one of which the answer must be."""
    values = cursor.array(key, at_least=1)
    if not values:
        return
    choices = cursor.elements(key, str, "a string", values)
    if choices is not None:
        _add(draft, cursor, key, "choice", _encode(choices).decode())


def take_json_object(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take a switch that asks for any JSON object."""
    if cursor.flag(key):
        draft.constraints.append(Constraint("json_object", "", cursor.path(key)))


def _pattern(kind: ConstraintKind) -> Take:
    def take(draft: Draft, cursor: Cursor, key: str) -> None:
        value = cursor.text(key, characters_min=1)
        if value is not None:
            _add(draft, cursor, key, kind, value)

    return take


def _hint(draft: Draft, cursor: Cursor, key: str) -> None:
    draft.ignore(cursor.path(key))


def take_structured_outputs(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take vLLM's `structured_outputs`: an object with one constraint in it."""
    wanted = cursor.object(key)
    if wanted is not None:
        take_all(draft, wanted, _STRUCTURED)


def _add(
    draft: Draft,
    cursor: Cursor,
    key: str,
    kind: ConstraintKind,
    value: str,
    *,
    strict: bool = True,
) -> None:
    options = draft.options
    of_schema = kind in ("json_schema", "structural_tag")
    limit = options.schema_max_bytes if of_schema else options.grammar_max_bytes
    if len(value) > limit or len(value.encode()) > limit:
        cursor.problem(key, f"must have at most {limit} bytes")
        return
    draft.constraints.append(Constraint(kind, value, cursor.path(key), strict))


def _object_or_text(cursor: Cursor, key: str, code: str) -> Cursor | None:
    """Return a cursor on an object that may be spelled as JSON text; paths stay those of the body."""
    value: Any = cursor.values[key]
    if type(value) is not str:
        return cursor.object(key)
    try:
        return Cursor(read_json(value.encode()), cursor.problems, cursor, key)
    except SmgError:
        cursor.problem(key, "must be an object, or the JSON text of one", code)
        return None


_FORMATS: Final = ("text", "json_object", "json_schema", "structural_tag")
_TEXT: Final = ("type",)
_JSON_OBJECT: Final = ("type", "schema", "strict")
_JSON_SCHEMA: Final = ("type", "json_schema")
_NAMED_SCHEMA: Final = ("name", "description", "strict", "schema")
_FLAT_SCHEMA: Final = ("type", *_NAMED_SCHEMA)

_STRUCTURED: Final[Mapping[str, Take]] = {
    "json": take_schema,
    "regex": _pattern("regex"),
    "choice": take_choice,
    "grammar": _pattern("ebnf"),
    "json_object": take_json_object,
    "structural_tag": take_tag,
    "disable_fallback": _hint,
    "disable_any_whitespace": _hint,
    "disable_additional_properties": _hint,
    "whitespace_pattern": _hint,
    "backend": _hint,
}

CONSTRAINTS: Final[dict[str, Take]] = {
    "response_format": take_response_format,
    "structured_outputs": take_structured_outputs,
    "json_schema": take_schema,
    "guided_json": take_schema,
    "regex": _pattern("regex"),
    "guided_regex": _pattern("regex"),
    "ebnf": _pattern("ebnf"),
    "grammar": _pattern("ebnf"),
    "guided_grammar": _pattern("ebnf"),
    "choice": take_choice,
    "guided_choice": take_choice,
    "guided_json_object": take_json_object,
    "structural_tag": take_tag,
    "guided_decoding_backend": _hint,
    "guided_whitespace_pattern": _hint,
}
