"""Section reader: the fields of one section as an operator sends them while nodes run, read and checked as a file's are."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from smg_node.config.schema.knob import Knob, Schema, format_number
from smg_node.config.schema.problems import ConfigurationError, Problem, shown
from smg_node.config.schema.suggestions import did_you_mean
from smg_node.config.schema.value_parser import read_value


def read_section(section: type[BaseModel], body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields that were given, as JSON has them; ConfigurationError names the fields that are wrong.

    The subject of a problem is the field, "" for what is wrong with all of them together.
    """
    schema = Schema(section)
    problems: list[Problem] = []
    given: dict[str, object] = {}
    for field, raw in body.items():
        knob = schema.at((field,))
        if not isinstance(knob, Knob):
            hint = did_you_mean(field, [one.path[0] for one in schema.knobs])
            problems.append(Problem(field[:80], f"there is no such field{hint}"))
            continue
        try:
            given[field] = read_value(knob, raw)
        except ValueError as error:
            problems.append(Problem(field, str(error)))
    if problems:
        raise ConfigurationError(problems)
    try:
        whole = section(**given)
    except ValidationError as error:
        found = error.errors(include_url=False)
        raise ConfigurationError([_problem(detail, schema) for detail in found]) from None
    return whole.model_dump(mode="json", exclude_unset=True)


def _problem(detail: ErrorDetails, schema: Schema) -> Problem:
    names = tuple(str(part) for part in detail["loc"])
    knob = schema.at(names[:1])
    rest = "".join(f"[{name}]" for name in names[1:] if name.isdecimal())
    message = problem_text(detail, knob if isinstance(knob, Knob) else None)
    return Problem("".join(names[:1]) + rest, message)


def problem_text(detail: ErrorDetails, knob: Knob | None) -> str:
    """Return the library's finding in our words; total, because new kinds of findings fall through to its own."""
    kind, value = detail["type"], detail["input"]
    if knob is not None and kind in ("greater_than_equal", "less_than_equal", "finite_number"):
        number = format_number(value) if isfinite(value) else str(value)
        return f"{number} is out of range {knob.bounds}: {knob.why}"
    if kind == "value_error":
        return str(detail["ctx"]["error"])
    if kind in ("too_long", "string_too_long"):
        context = detail["ctx"]
        things = "entries" if kind == "too_long" else "characters"
        return f"it has more than {context['max_length']} {things}"
    return (
        detail["msg"]
        if knob is not None and knob.secret
        else f"{detail['msg']}, got {shown(value)}"
    )
