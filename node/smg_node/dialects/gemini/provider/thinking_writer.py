"""Writer of `thinkingConfig`: a level for Gemini 3 and later, a budget for 2.5, nothing for those that do not think. Pure.

    effort     none        minimal   low     medium   high, xhigh, max
    level      the least   MINIMAL   LOW     MEDIUM   HIGH
    budget     0           1,024     1,024   8,192    24,576, the most

The budgets are those that Google's own OpenAI-compatible door gives to the levels. A model that cannot do without
thinking gets the least it can do with.
"""

from collections.abc import Mapping
from typing import Any, Final

from smg_node.core.generation.request import Effort, Thinking
from smg_node.dialects.gemini.provider.model_traits import ModelTraits

_LEVELS: Final[Mapping[Effort, str]] = {
    "none": "MINIMAL",
    "minimal": "MINIMAL",
    "low": "LOW",
    "medium": "MEDIUM",
    "high": "HIGH",
    "xhigh": "HIGH",
    "max": "HIGH",
}
_LEAST: Final = "MINIMAL"
_BUDGETS: Final[Mapping[Effort, int]] = {
    "none": 0,
    "minimal": 1_024,
    "low": 1_024,
    "medium": 8_192,
    "high": 24_576,
    "xhigh": 2**31,
    "max": 2**31,
}
_BY_BUDGET: Final[tuple[tuple[int, Effort], ...]] = (
    (512, "minimal"),
    (4_096, "low"),
    (16_384, "medium"),
)
"""Up to how many tokens a budget is that effort; more is high."""
_AS_IT_LIKES: Final = -1


def thinking_config(thinking: Thinking, traits: ModelTraits) -> dict[str, Any] | None:
    """Return `thinkingConfig`; None where nothing is to be said, or the model cannot be told."""
    if traits.thinking == "none":
        return None
    said = _level(thinking, traits) if traits.thinking == "level" else _budget(thinking, traits)
    # A model that does not think refuses to show what it thinks.
    if said.get("thinkingBudget") != 0 and (traits.shows or said):
        said["includeThoughts"] = True
    return said or None


def _off(thinking: Thinking) -> bool:
    return thinking.on is False or (thinking.on is None and thinking.effort == "none")


def _level(thinking: Thinking, traits: ModelTraits) -> dict[str, Any]:
    effort = thinking.effort
    if effort is None and thinking.budget is not None:
        known = (effort for most, effort in _BY_BUDGET if thinking.budget <= most)
        effort = next(known, "high")
    level = _LEAST if _off(thinking) else "" if effort is None else _LEVELS[effort]
    if level == _LEAST and not traits.can_rest:
        level = "LOW"
    return {"thinkingLevel": level} if level else {}


def _budget(thinking: Thinking, traits: ModelTraits) -> dict[str, Any]:
    least, most = traits.budgets
    if _off(thinking):
        return {"thinkingBudget": 0 if traits.can_rest else least}
    budget = thinking.budget
    if budget is None and thinking.effort not in (None, "none"):
        budget = _BUDGETS[thinking.effort]
    if budget is not None:
        return {"thinkingBudget": min(max(budget, least), most)}
    return {"thinkingBudget": _AS_IT_LIKES} if thinking.adaptive or thinking.on else {}
