"""Effort: how much a vendor's model is to think, as a word, from an effort, a budget or a switch. Pure.

Models that never think take no effort, and refuse the field. Budgets are of Anthropic and Google; the words for them lie
between the budgets that their APIs have for these words.
"""

from collections.abc import Collection
from typing import Final

from smg_node.core.generation.request import Effort, Thinking
from smg_node.dialects.openai.provider.quirks import NO_EFFORT_NONE, NO_THINKING

_NEVER: Final = ("gpt-3.5", "gpt-4", "chatgpt-4", "ft:gpt-3.5", "ft:gpt-4")
_BUDGETS: Final[tuple[tuple[int, Effort], ...]] = ((2_048, "low"), (16_384, "medium"))


def thinks(model: str, quirks: Collection[str]) -> bool:
    """Whether a model can think, as far as its name tells: it is taken for one that can, if it is not known."""
    return NO_THINKING not in quirks and not model.startswith(_NEVER)


def effort_of(thinking: Thinking, quirks: Collection[str]) -> Effort | None:
    """Return the effort; None leaves it to the model."""
    effort = thinking.effort
    if effort is None and thinking.on is False:
        effort = "none"
    elif effort is None and thinking.budget is not None:
        most = thinking.budget
        effort = next((word for limit, word in _BUDGETS if most <= limit), "high")
        effort = "none" if most == 0 else effort
    if effort == "none" and NO_EFFORT_NONE in quirks:
        return "minimal"
    return effort


def shows_thoughts(thinking: Thinking) -> bool:
    """Whether the client wants thoughts, and so to see them."""
    return thinking.on is not False and bool(thinking.on or thinking.adaptive or thinking.budget)
