"""Constraint check: early refusal of constraints that no engine should be sent. Pure.

Checked before anything is dispatched, so that a client is told which part is wrong, and a pattern
or grammar that would make an engine compile for minutes never reaches one. Nothing here matches
text against a pattern, follows a reference out of a schema, or reads anything but the constraint
itself.
"""

from typing import Any, Final, assert_never

import msgspec

from smg_node.core.errors import invalid
from smg_node.core.generation.request import Constraint
from smg_node.prompts.constraints.grammar_check import GrammarError, check_grammar
from smg_node.prompts.constraints.regex_size import PatternError, pattern_states
from smg_node.prompts.constraints.schema_check import SchemaError, check_schema

CONSTRAINT_MAX_BYTES: Final = 65_536
_NESTING_MAX: Final = 64
_SCHEMA_CODE: Final = "invalid_json_schema"
# Parts of a structural tag that hold further parts, and the one part that holds a schema.
_INNER: Final = ("content", "elements", "tags", "format")


def check_constraint(constraint: Constraint, *, max_bytes: int = CONSTRAINT_MAX_BYTES) -> None:
    """Raise INVALID_REQUEST at the constraint's path unless an engine may be sent it.

    Code `invalid_json_schema` for a schema, `invalid_value` for everything else.
    """
    value, where = constraint.value, constraint.where
    size = len(value.encode("utf-8", "surrogatepass"))
    if size > max_bytes:
        code = _SCHEMA_CODE if constraint.kind == "json_schema" else "invalid_value"
        raise invalid(f"it has {size} bytes; at most {max_bytes} are taken", where, code)
    match constraint.kind:
        case "json_object":
            return
        case "json_schema":
            _check_schema(_json(value, where, _SCHEMA_CODE), where)
        case "regex":
            _check_regex(value, where)
        case "ebnf":
            _check_grammar(value, where)
        case "structural_tag":
            _check_tag(_json(value, where, "invalid_value"), where)
        case "choice":
            _check_choice(_json(value, where, "invalid_value"), where)
        case _:
            assert_never(constraint.kind)


def _json(text: str, where: str, code: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise invalid(f"it is not JSON: {error}", where, code) from error


def _check_schema(schema: Any, where: str) -> None:
    try:
        check_schema(schema)
    except SchemaError as error:
        raise invalid(str(error), where + error.path, _SCHEMA_CODE) from error


def _check_regex(pattern: str, where: str) -> None:
    if not pattern:
        raise invalid("the regular expression is empty", where)
    try:
        pattern_states(pattern)
    except PatternError as error:
        raise invalid(f"the regular expression cannot be used: {error}", where) from error


def _check_grammar(grammar: str, where: str) -> None:
    try:
        check_grammar(grammar)
    except GrammarError as error:
        raise invalid(f"the grammar cannot be used: {error}", where) from error


def _check_choice(choices: Any, where: str) -> None:
    if not isinstance(choices, list) or not choices:
        raise invalid("a list of at least one string is needed", where)
    seen: set[str] = set()
    for at, choice in enumerate(choices):
        if not isinstance(choice, str) or not choice:
            raise invalid("a choice is a string that is not empty", f"{where}[{at}]")
        if choice in seen:
            raise invalid("each choice may be there once", f"{where}[{at}]")
        seen.add(choice)


def _check_tag(tag: Any, where: str) -> None:
    if not isinstance(tag, dict):
        raise invalid("a structural tag is an object", where)
    if tag.get("type", "structural_tag") != "structural_tag":
        raise invalid("its type is structural_tag", f"{where}.type")
    if "structures" in tag:
        _check_structures(tag, where)
    elif isinstance(tag.get("format"), dict):
        _check_format(tag["format"], f"{where}.format")
    else:
        raise invalid("a structural tag has a format, or structures and triggers", where)


def _check_structures(tag: dict[str, Any], where: str) -> None:
    """Check the older form: structures, each with begin, schema and end, and their triggers."""
    triggers = tag.get("triggers")
    if not _full_texts(triggers):
        raise invalid("triggers are strings, at least one", f"{where}.triggers")
    assert isinstance(triggers, list)
    structures = tag["structures"]
    if not isinstance(structures, list) or not structures:
        raise invalid("structures are a list of at least one", f"{where}.structures")
    for at, structure in enumerate(structures):
        place = f"{where}.structures[{at}]"
        if not isinstance(structure, dict):
            raise invalid("a structure is an object", place)
        begin, end = structure.get("begin"), structure.get("end")
        if not isinstance(begin, str) or not begin.startswith(tuple(triggers)):
            raise invalid("it begins with one of the triggers", f"{place}.begin")
        if not isinstance(end, str):
            raise invalid("its end is a string", f"{place}.end")
        schema = structure.get("schema")
        if schema is not True:
            _check_schema(schema, f"{place}.schema")


def _check_format(root: dict[str, Any], where: str) -> None:
    """Check the newer form: a tree of formats."""
    pending: list[tuple[Any, str, int]] = [(root, where, 0)]
    while pending:
        part, path, depth = pending.pop()
        if depth > _NESTING_MAX:
            raise invalid(f"the format nests more than {_NESTING_MAX} deep", path)
        if not isinstance(part, dict):
            raise invalid("a format is an object", path)
        _check_part(part, path)
        for key in _INNER:
            inner = part.get(key)
            if isinstance(inner, list):
                pending.extend(
                    (each, f"{path}.{key}[{at}]", depth + 1) for at, each in enumerate(inner)
                )
            elif inner is not None:
                pending.append((inner, f"{path}.{key}", depth + 1))


def _check_part(part: dict[str, Any], path: str) -> None:
    kind = part.get("type", "tag" if "begin" in part else None)
    if not isinstance(kind, str):
        raise invalid("a format has a type", f"{path}.type")
    if kind == "tag" and not (isinstance(part.get("begin"), str) and "content" in part):
        raise invalid("a tag has begin, content and end", path)
    if kind in ("triggered_tags", "tags_with_separator") and not isinstance(part.get("tags"), list):
        raise invalid("tags are a list", f"{path}.tags")
    if kind == "triggered_tags" and not _full_texts(part.get("triggers")):
        raise invalid("triggers are strings, at least one", f"{path}.triggers")
    if kind in ("sequence", "or") and not isinstance(part.get("elements"), list):
        raise invalid("elements are a list", f"{path}.elements")
    schema = part.get("json_schema")
    if kind == "json_schema" or schema is not None:
        if schema is not True:
            _check_schema(schema, f"{path}.json_schema")
    elif kind == "regex":
        _check_regex(str(part.get("pattern", "")), f"{path}.pattern")
    elif kind == "grammar":
        _check_grammar(str(part.get("grammar", "")), f"{path}.grammar")


def _full_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(t, str) and t for t in value)
