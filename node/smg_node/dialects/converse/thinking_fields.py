"""Thinking fields of a Converse body: how much to think, from an effort or a budget. Pure.

    Claude    off                        additionalModelRequestFields.thinking disabled
              a budget                   enabled, with a budget below the answer's length
              an effort, or just on      adaptive, with outputConfig.effort
    OpenAI    an effort                  additionalModelRequestFields.reasoning_effort
    Qwen      an effort                  additionalModelRequestFields.reasoning_config
    others    an effort                  outputConfig.effort

Claude refuses to think where a call is forced, where the answer goes on from given text, and, with a budget, where the
loop of calls that is under way began without a signed thought. There the wish is left out and named.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from smg_node.core.generation.request import ChatPrompt, Effort, Thinking
from smg_node.dialects.converse.vendor_answer import ANTHROPIC
from smg_node.dialects.provider_dialect import WriterOptions

BUDGETS_ONLY: Final = "thinking_by_budget"
"""Quirk: the model thinks by budget only."""
ADAPTIVE_ONLY: Final = "thinking_adaptive_only"
"""Quirk: the model takes no budgets."""
BUDGET_MIN: Final = 1_024
_BUDGETS: Final[Mapping[Effort, int]] = {
    "minimal": 1_024,
    "low": 2_048,
    "medium": 8_192,
    "high": 16_384,
    "xhigh": 24_576,
    "max": 32_768,
}
_USUAL: Final = 8_192
"""The budget of who says only that it should think."""


_OWN_EFFORTS: Final[Mapping[str, str]] = {
    "openai.": "reasoning_effort",
    "qwen.": "reasoning_config",
}
"""Models that have the effort among their own fields, by a part of their names; of three levels."""
_LEVELS: Final = ("low", "medium", "high")


class ThinkingFields(NamedTuple):
    """What a body says of thinking. `max_tokens` is the answer's length, None where nobody needs one.

    `own` are fields that only the model itself knows.
    """

    max_tokens: int | None
    own: Mapping[str, Any] = MappingProxyType({})
    effort: str | None = None
    ignored: tuple[str, ...] = ()

    @property
    def on(self) -> bool:
        """Whether Claude's thinking is asked for."""
        thinking = self.own.get("thinking")
        return thinking is not None and thinking["type"] != "disabled"


def thinking_fields(
    prompt: ChatPrompt,
    max_tokens: int | None,
    options: WriterOptions,
    *,
    forced: bool,
    messages: Sequence[Mapping[str, Any]],
) -> ThinkingFields:
    """Return the fields. `forced`: a call is."""
    wish = prompt.thinking
    if not wish.said:
        return ThinkingFields(max_tokens)
    ignored = () if wish.number is None else (wish.where,)
    off = wish.on is False or (wish.on is None and wish.effort == "none")
    effort = None if off or BUDGETS_ONLY in options.quirks else _effort(wish)
    if options.issuer != ANTHROPIC:
        heard = effort is not None and wish.budget is None
        told = ignored if heard else (wish.where,)
        return _of_others(max_tokens, effort, told, options.model)
    if off:
        return ThinkingFields(max_tokens, _thinking("disabled"), None, ignored)
    budget = _budget(wish, options)
    if budget is None and wish.on is None and not wish.adaptive and effort is None:
        return ThinkingFields(max_tokens, ignored=ignored)
    room = max_tokens
    if room is None and budget is not None:
        room = options.output_max + (budget if budget >= options.output_max else 0)
    barred = forced or messages[-1]["role"] == "assistant"
    small = room is not None and room <= BUDGET_MIN
    if barred or (budget is not None and (small or _lacks_thought(messages))):
        return ThinkingFields(max_tokens, {}, effort, (*ignored, wish.where))
    if budget is None or room is None:
        dropped = () if wish.budget is None else (wish.where,)
        return ThinkingFields(max_tokens, _thinking("adaptive"), effort, (*ignored, *dropped))
    tokens = max(BUDGET_MIN, min(budget, room - 1))
    return ThinkingFields(room, _thinking("enabled", budget_tokens=tokens), effort, ignored)


def _thinking(kind: str, **said: int) -> dict[str, Any]:
    return {"thinking": {"type": kind, **said}}


def _of_others(
    max_tokens: int | None, effort: str | None, ignored: tuple[str, ...], model: str
) -> ThinkingFields:
    own = next((field for name, field in _OWN_EFFORTS.items() if name in model), None)
    if own is None or effort is None:
        return ThinkingFields(max_tokens, {}, effort, ignored)
    level = effort if effort in _LEVELS else _LEVELS[-1]
    return ThinkingFields(max_tokens, {own: level}, None, ignored)


def _effort(wish: Thinking) -> str | None:
    if wish.effort is None or wish.effort == "none":
        return None
    return "low" if wish.effort == "minimal" else wish.effort


def _budget(wish: Thinking, options: WriterOptions) -> int | None:
    if ADAPTIVE_ONLY in options.quirks:
        return None
    if wish.budget is not None or BUDGETS_ONLY not in options.quirks:
        return wish.budget
    return _USUAL if wish.effort is None else _BUDGETS.get(wish.effort, _USUAL)


def _lacks_thought(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the last assistant's message waits for results and does not begin with a thought."""
    for message in reversed(messages):
        blocks = message["content"]
        if message["role"] == "assistant":
            return (
                any("toolUse" in block for block in blocks) and "reasoningContent" not in blocks[0]
            )
        if any("toolResult" not in block for block in blocks):
            return False
    return False
