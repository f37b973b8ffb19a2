"""Thinking switch: finds the variable that turns a template's reasoning on, off or to a level, by
test renders.

Templates read one of a dozen variables, each with its own words, and nothing says which. So a template is
rendered with every value of those it reads; a variable that changes nothing is no switch, whatever its
name. A template that ignores `false`, or sets the variable itself, is found out that way; so is one that
prints any word it is given, and one that refuses those it does not know.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from smg_node.core.generation.request import Effort
from smg_node.prompts.analysis.thinking_variables import (
    ADAPTIVE,
    EFFORTS,
    Default,
    Levels,
    Switch,
    nearest,
    turned_on,
)

Ask: TypeAlias = Callable[[Mapping[str, Any]], str | None]
"""Renders a small conversation with these variables; None if the template fails."""

NO_SWITCH: Final = "none"
"""What an operator says of a model that has no switch."""
# Variables that turn thoughts on and off, with the value for each. The first that works is taken.
_SWITCHES: Final[Mapping[str, tuple[Any, Any]]] = {
    "enable_thinking": (True, False),
    "thinking": (True, False),
    "thinking_mode": ("enabled", "disabled"),
    "reasoning": (True, False),
}
# Variables for how much: two that take words, one that takes a boolean, one that takes tokens.
_WORDS: Final = ("reasoning_effort", "thinking_effort")
_OFF_WORDS: Final = ("none", "no_think")
# Levels of a template that prints whatever word it is given: those that models of that kind learnt.
_PRINTED: Final[tuple[Effort, ...]] = ("low", "medium", "high")
_LOW: Final = "low_effort"
_LOWS: Final[Levels] = (("low", True), ("medium", False))
_BUDGET: Final = "thinking_budget"
_AMOUNTS: Final = (*_WORDS, _LOW, _BUDGET)
_BUDGET_FREE: Final = -1
_BUDGET_OFF: Final = 0
_BUDGET_LEAST: Final = 512
_BUDGETS: Final[Levels] = (("low", _BUDGET_LEAST), ("medium", _BUDGET_FREE))
_PROBED_BUDGETS: Final = (_BUDGET_FREE, _BUDGET_OFF, _BUDGET_LEAST)
DIAL: Final[Levels] = (("low", 0.2), ("medium", 0.7), ("high", 0.9), ("max", 0.99))
"""What Inkling learnt to take for these levels; other templates that only take a number are few and alike."""
_DIAL_OFF: Final = 0.0
# No template knows this word or can expect this number.
_ODD: Final = "smgodd"
_NUMBERS: Final = (0.37, 1)
# Words of a template whose model thinks, whether or not it can be told not to.
_SIGNS: Final = ("think", "reason")


def find_switch(
    read: Collection[str], words: Collection[str], ask: Ask, *, source: str, key: str = ""
) -> Switch:
    """Return the switch of a template that reads the variables `read` and holds the strings `words`.

    `key` is the operator's word for it: a variable that is taken for the switch whatever it changes, or `none`.
    """
    lowered = source.lower()
    thinks = any(sign in lowered for sign in _SIGNS)
    if key == NO_SWITCH:
        return Switch(thinks=thinks)
    if key in _AMOUNTS:
        read = [key]
    candidates = {key: _SWITCHES.get(key, (True, False))} if key else _SWITCHES
    plain = ask({})
    switch = _find_on_off({k: v for k, v in candidates.items() if key or k in read}, ask, plain)
    if key and not switch.key:
        switch = _believed(key)
    base = turned_on(switch)
    amount = _find_amount([each for each in _AMOUNTS if each in read], words, ask, base)
    if amount is not None:
        switch = _with_amount(switch, amount, ask, plain)
    return replace(
        switch,
        adaptive=switch.key == "thinking_mode" and ADAPTIVE in words,
        thinks=thinks or bool(switch.key or switch.levels),
    )


def _believed(key: str) -> Switch:
    """Return the switch that an operator says there is, though the probe saw none."""
    if key == _BUDGET:
        return Switch(
            key, _BUDGET_FREE, _BUDGET_OFF, level_key=key, levels=_BUDGETS, budget_key=key
        )
    if key == _LOW:
        return Switch(level_key=key, levels=_LOWS)
    if key in _WORDS:
        return Switch(level_key=key, levels=tuple((each, each) for each in _PRINTED))
    on, off = _SWITCHES.get(key, (True, False))
    return Switch(key, on, off)


def _find_on_off(known: Mapping[str, tuple[Any, Any]], ask: Ask, plain: str | None) -> Switch:
    """Return the first switch whose two values end the prompt in two ways; else the first that changes anything."""
    weaker: Switch | None = None
    for key, (on, off) in known.items():
        yes, no = ask({key: on}), ask({key: off})
        if yes is None or no is None or yes == no:
            continue
        default: Default = "unknown"
        if plain in (yes, no):
            default = "on" if plain == yes else "off"
        found = Switch(key, on, off, default)
        if _tail(yes) != _tail(no):
            return found
        weaker = weaker or found
    return weaker or Switch()


def _tail(text: str) -> str:
    """Return what stands behind the question."""
    return text.rpartition(QUESTION)[2]


QUESTION: Final = "smgquestion"
"""What the user says in the conversation that `Ask` renders."""


@dataclass(frozen=True, slots=True)
class _Amount:
    """A variable for how much: the levels it knows, and its value for not at all."""

    key: str
    levels: Levels
    off: Any


def _find_amount(
    read: Iterable[str], words: Collection[str], ask: Ask, base: Mapping[str, Any]
) -> _Amount | None:
    """Return the first variable for how much that changes anything."""
    for key in read:
        found: _Amount | None = None
        if key in _WORDS:
            found = _levels_of(key, words, ask, base)
        elif key == _LOW and _differ(ask({**base, key: low}) for low in (True, False)):
            found = _Amount(key, _LOWS, None)
        elif key == _BUDGET and _differ(ask({**base, key: one}) for one in _PROBED_BUDGETS):
            found = _Amount(key, _BUDGETS, _BUDGET_OFF)
        if found is not None:
            return found
    return None


def _with_amount(switch: Switch, amount: _Amount, ask: Ask, plain: str | None) -> Switch:
    """Return `switch` with levels; where it has no way to turn thoughts off, the amount's own."""
    key = amount.key
    numbers = key in _WORDS and _takes_numbers(key, ask, turned_on(switch))
    if not switch.key and amount.off is not None and amount.levels:
        known = dict(amount.levels)
        default: Default = "off" if plain == ask({key: amount.off}) else "on"
        switch = Switch(key, known[nearest("high", known)], amount.off, default)
    return replace(
        switch,
        level_key=key,
        levels=amount.levels,
        budget_key=key if key == _BUDGET else "",
        numbers=numbers,
    )


def _levels_of(
    key: str, words: Collection[str], ask: Ask, base: Mapping[str, Any]
) -> _Amount | None:
    odd = ask({**base, key: _ODD})
    prints_any = odd is not None and _ODD in odd
    texts = {
        word: text
        for word in (*EFFORTS[1:], *_OFF_WORDS)
        if (text := ask({**base, key: word})) is not None
    }
    # Words that are treated otherwise than any word would be.
    special = {
        word for word, text in texts.items() if odd is None or text != odd.replace(_ODD, word)
    }
    levels = [
        each
        for each in EFFORTS[1:]
        if each in special
        or (each in texts and (each in words or (prints_any and each in _PRINTED)))
    ]
    if not levels and _takes_numbers(key, ask, base):
        return _Amount(key, DIAL, _DIAL_OFF)
    if not _differ((*texts.values(), ask(base))):
        return None
    off: str | None = next((word for word in _OFF_WORDS if word in special), None)
    tails = {each: _tail(texts[each]) for each in EFFORTS[1:] if each in texts}
    quiet = [each for each in levels if _silences(tails[each], tails[levels[-1]])]
    if quiet:
        # The lowest words mean not at all; whatever ends the prompt as the highest does is a level too.
        off = off or quiet[0]
        loud = tails[levels[-1]]
        levels = [each for each in tails if each in levels or tails[each] == loud]
    return _Amount(key, tuple((each, each) for each in levels), off)


def _silences(tail: str, loud: str) -> bool:
    """Whether a prompt that ends in `tail` has no thought open, where one that ends in `loud` may have."""
    closes = "</" in tail and "</" not in loud
    return tail != loud and (closes or tail.startswith(loud) or loud.startswith(tail))


def _takes_numbers(key: str, ask: Ask, base: Mapping[str, Any]) -> bool:
    return _differ(ask({**base, key: number}) for number in _NUMBERS)


def _differ(texts: Iterable[str | None]) -> bool:
    """Whether there are two different ones among the texts that came out."""
    return len({text for text in texts if text is not None}) > 1
