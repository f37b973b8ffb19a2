"""Thinking parameters: effort (`reasoning_effort`) and switch (`thinking`, `enable_thinking`)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, get_args

from smg_node.core.generation.request import Effort, Thinking
from smg_node.core.json_cursor import Cursor, kind_of, whole
from smg_node.dialects.openai.request_draft import Draft, Take

_EFFORTS: Final[Mapping[str, Effort]] = {effort: effort for effort in get_args(Effort)}
_NUMBER_MAX: Final = 1e9
_BUDGET_MIN: Final = 1_024
_LENGTHS: Final = ("max_completion_tokens", "max_tokens", "max_output_tokens")


def take_effort(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take how much to think, a word or a number; numbers are for the templates that take one."""
    value = cursor.values[key]
    where = cursor.path(key)
    if type(value) is str:
        effort = cursor.word(key, tuple(_EFFORTS))
        if effort is not None:
            _note(draft, effort=_EFFORTS[effort], where=where)
    elif type(value) in (int, float):
        number = cursor.number(key, low=0, high=_NUMBER_MAX)
        if number is not None:
            _note(draft, number=number, where=where)
    else:
        cursor.problem(key, f"must be a string or a number, not {kind_of(value)}", "invalid_type")


def take_switch(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `enable_thinking`, a boolean."""
    on = cursor.flag(key)
    if on is not None:
        _note(draft, on=on, where=cursor.path(key))


def take_thinking(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `thinking`: a boolean, or an object of `type` and perhaps `budget_tokens`.

    A budget is at least 1,024 and less than what may be generated in all.
    """
    value = cursor.values[key]
    if type(value) is bool:
        take_switch(draft, cursor, key)
        return
    if type(value) is not dict:
        why = f"must be a boolean or an object, not {kind_of(value)}"
        cursor.problem(key, why, "invalid_type")
        return
    inside = Cursor(value, cursor.problems, cursor, key)
    inside.only(("type", "budget_tokens"))
    kind = inside.word("type", ("enabled", "disabled", "adaptive"), required=True)
    if kind is None:
        return
    _note(draft, on=kind != "disabled", adaptive=kind == "adaptive", where=cursor.path(key))
    budget = inside.integer("budget_tokens", low=_BUDGET_MIN)
    if budget is None:
        return
    lengths = [whole(cursor.values.get(name)) for name in _LENGTHS]
    most = min((length for length in lengths if length is not None), default=None)
    if most is not None and budget >= most:
        inside.problem("budget_tokens", f"must be less than the {most} tokens of the answer")
    _note(draft, budget=budget)


def _note(draft: Draft, **said: Any) -> None:
    draft.prompt["thinking"] = replace(draft.prompt.get("thinking", Thinking()), **said)


THINKING: Final[dict[str, Take]] = {
    "reasoning_effort": take_effort,
    "enable_thinking": take_switch,
    "thinking": take_thinking,
}
