"""Model traits: what a Gemini model's name tells of how it wants to be asked. Pure.

    gemini-3 and later    levels of thinking; a step's first call must be signed; calls have ids
    gemini-2.5            budgets of thinking; no function calls together with JSON
    before, and gemma     no thinking

A name without a version (`gemini-flash-latest`) is that of the newest. The quirks `thinking_level`, `thinking_budget`,
`no_thinking` and `no_call_ids` say otherwise.
"""

import re
from collections.abc import Collection
from typing import Final, Literal, NamedTuple, TypeAlias

Control: TypeAlias = Literal["level", "budget", "none"]

LEVEL: Final = "thinking_level"
BUDGET: Final = "thinking_budget"
NO_THINKING: Final = "no_thinking"
NO_CALL_IDS: Final = "no_call_ids"

_VERSION: Final = re.compile(r"gemini-(\d{1,3})(?:\.(\d{1,3}))?(?![\d.])")
_NEWEST: Final = (3, 0)
_GEMMA: Final = (0, 0)
_FIRST_THINKING: Final = (2, 5)
_TEXTLESS: Final = ("image", "tts", "audio", "live", "embedding")
"""In names of models that think only from version 3 on, if at all."""
_RANGES: Final = (("pro", (128, 32_768)), ("lite", (512, 24_576)))
_RANGE: Final = (1, 24_576)


class ModelTraits(NamedTuple):
    """How one model is to be asked.

    `thinking` is how it is told how much to think, `budgets` the least and most tokens of a budget, `can_rest` whether
    it can do without thinking, `shows` whether thoughts can be asked for in any request. `signs`: it refuses a step
    whose first call lacks its signature. `call_ids`: it pairs results with calls by ids. `json_and_tools`: it takes
    a form of the answer beside functions. `shown_results`: results may hold media.
    """

    thinking: Control
    budgets: tuple[int, int]
    can_rest: bool
    shows: bool
    signs: bool
    call_ids: bool
    json_and_tools: bool
    shown_results: bool


def traits_of(model: str, quirks: Collection[str] = ()) -> ModelTraits:
    """Return the traits of a model with this name, as the vendor spells it."""
    name = model.lower()
    found = _VERSION.search(name)
    version = (int(found[1]), int(found[2] or 0)) if found else _NEWEST
    if "gemma" in name:
        version = _GEMMA
    named = "gemini" in name
    new = version >= _NEWEST
    thinks = new or (version >= _FIRST_THINKING and not any(word in name for word in _TEXTLESS))
    control: Control = "level" if new else "budget" if thinks else "none"
    if LEVEL in quirks:
        control = "level"
    elif BUDGET in quirks:
        control = "budget"
    elif NO_THINKING in quirks:
        control = "none"
    return ModelTraits(
        control,
        next((budgets for word, budgets in _RANGES if word in name), _RANGE),
        "pro" not in name,
        control != "none" and named and (new or "lite" not in name),
        new and named,
        new and named and NO_CALL_IDS not in quirks,
        new,
        new,
    )
