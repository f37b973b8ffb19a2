"""Thinking variables: template variables for a request's reasoning settings, by the template's
switch. Pure.

What the client sets itself, as a variable of the template, is never replaced. A wish that cannot be honoured
is no error: the nearest that can be is done, and that is said.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from smg_node.core.generation.request import Effort, Thinking

Levels: TypeAlias = tuple[tuple[Effort, Any], ...]
Default: TypeAlias = Literal["on", "off", "unknown"]

EFFORTS: Final[tuple[Effort, ...]] = get_args(Effort)
"""From the least to the most."""
ADAPTIVE: Final = "adaptive"
"""The value of a switch that leaves it to the model."""


@dataclass(frozen=True, slots=True)
class Switch:
    """Variables that turn a template's reasoning on and off, and its levels.

    `key` is the variable that takes `on` and `off`, "" if there is none; where `off` is None it cannot be turned
    off. `level_key` takes `levels`, the least first; it may be the same. `default` is what happens where nothing
    is said. `thinks` is whether its model thinks at all, as far as its template shows.
    """

    key: str = ""
    on: Any = None
    off: Any = None
    default: Default = "unknown"
    level_key: str = ""
    levels: Levels = ()
    budget_key: str = ""
    adaptive: bool = False
    numbers: bool = False
    thinks: bool = False


@dataclass(frozen=True, slots=True)
class ThinkingVariables:
    """The variables that a wish becomes; `unheeded` says what of it could not be honoured, "" if all was."""

    variables: Mapping[str, Any]
    unheeded: str = ""


def thinking_variables(
    thinking: Thinking, switch: Switch, explicit: Collection[str] = ()
) -> ThinkingVariables:
    """Return the template's variables for a wish.

    `explicit` are those that the client sets itself: they win, and where one of them is part of the switch
    nothing is said to be unheeded.
    """
    if not thinking.said:
        return ThinkingVariables({})
    made = _off(switch) if _wants_off(thinking, switch) else _on(thinking, switch)
    own = {key: value for key, value in made.variables.items() if key not in explicit}
    decided = any(key in explicit for key in (switch.key, switch.level_key) if key)
    return ThinkingVariables(own, "" if decided else made.unheeded)


def nearest(effort: Effort, levels: Iterable[Effort]) -> Effort:
    """Return the level for an effort: for the least ones the lowest, else the same, or one below, or one above."""
    known = sorted(levels, key=EFFORTS.index)
    assert known, "only asked where there are levels"
    if effort in ("none", "minimal", "low"):
        return known[0]
    below = [each for each in known if EFFORTS.index(each) <= EFFORTS.index(effort)]
    return below[-1] if below else known[0]


def _wants_off(thinking: Thinking, switch: Switch) -> bool:
    if thinking.on is not None:
        return not thinking.on
    if thinking.effort == "minimal":
        return not switch.levels and switch.off is not None
    return thinking.effort == "none"


def _off(switch: Switch) -> ThinkingVariables:
    if switch.off is not None:
        return ThinkingVariables({switch.key: switch.off})
    if switch.levels:
        why = "this model always thinks; it is told to think as little as it can"
        return ThinkingVariables({**turned_on(switch), switch.level_key: switch.levels[0][1]}, why)
    return ThinkingVariables(
        {}, "this model's thoughts cannot be switched off" if switch.thinks else ""
    )


def _on(thinking: Thinking, switch: Switch) -> ThinkingVariables:
    effort = None if thinking.effort == "none" else thinking.effort
    variables = turned_on(switch)
    unheeded: list[str] = []
    if thinking.adaptive and effort is None and switch.adaptive:
        variables[switch.key] = ADAPTIVE
    if thinking.number is not None:
        if switch.numbers:
            variables[switch.level_key] = thinking.number
        else:
            unheeded.append("this model takes no effort as a number")
    elif effort is not None and switch.levels:
        known = dict(switch.levels)
        variables[switch.level_key] = known[nearest(effort, known)]
    elif not switch.key and (effort is not None or not switch.thinks):
        unheeded.append("this model cannot be told how much to think")
    if thinking.budget is not None:
        if switch.budget_key:
            variables[switch.budget_key] = thinking.budget
        else:
            unheeded.append("this model takes no budget for its thoughts")
    return ThinkingVariables(variables, "; ".join(unheeded))


def turned_on(switch: Switch) -> dict[str, Any]:
    """Return what turns thoughts on; nothing where levels do that and they are on already."""
    if not switch.key or (switch.key == switch.level_key and switch.default == "on"):
        return {}
    return {switch.key: switch.on}
