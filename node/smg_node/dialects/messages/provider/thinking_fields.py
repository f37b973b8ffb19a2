"""Thinking fields of a Messages body: how much to think, from an effort or a budget. Pure.

    off                        disabled
    a budget                   enabled, with a budget below max_tokens
    an effort, or just on      adaptive, with the effort beside it

The vendor refuses to think where a call is forced, where the answer goes on from given text, and, with a budget, where
the loop of calls that is under way began without a signed thought. There the wish is left out and named.
"""

from typing import Any, Final, NamedTuple

from smg_node.core.generation.request import ChatPrompt, Effort, Thinking
from smg_node.dialects.messages.provider.conversation import Conversation
from smg_node.dialects.provider_dialect import WriterOptions

BUDGETS_ONLY: Final = "thinking_by_budget"
"""Quirk: the model thinks by budget only."""
ADAPTIVE_ONLY: Final = "thinking_adaptive_only"
"""Quirk: the model takes no budgets."""
BUDGET_MIN: Final = 1_024
_OUTPUT_UNSAID: Final = 4_096
"""The longest answer of a model of which none is known."""
_EFFORTS: Final[dict[Effort, str]] = {
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}
_BUDGETS: Final[dict[Effort, int]] = {
    "minimal": 1_024,
    "low": 2_048,
    "medium": 8_192,
    "high": 16_384,
    "xhigh": 24_576,
    "max": 32_768,
}
_USUAL: Final[Effort] = "medium"
"""Of who says only that it should think."""


class ThinkingFields(NamedTuple):
    """What a body says of thinking. `on`: whether it asks for it."""

    max_tokens: int
    thinking: dict[str, Any] | None = None
    effort: str | None = None
    ignored: tuple[str, ...] = ()

    @property
    def on(self) -> bool:
        """Whether thinking is asked for."""
        return self.thinking is not None and self.thinking["type"] != "disabled"


def thinking_fields(
    prompt: ChatPrompt,
    max_tokens: int | None,
    options: WriterOptions,
    said: Conversation,
    fields: dict[str, Any],
) -> ThinkingFields:
    """Return the fields; `fields` has the tools already. Where the client gave no `max_tokens`, a budget gets room
    beside it, or half of the longest answer if that is known.
    """
    wish = prompt.thinking
    room = options.output_max if max_tokens is None else max_tokens
    ignored = () if wish.number is None else (wish.where,)
    if not wish.said:
        return ThinkingFields(room)
    effort = None if BUDGETS_ONLY in options.quirks else _effort(wish)
    if wish.on is False or (wish.on is None and wish.effort == "none"):
        return ThinkingFields(room, {"type": "disabled"}, effort, ignored)
    budget = _budget(wish, options)
    if (
        wish.on is None
        and not wish.adaptive
        and effort is None
        and budget is None
        and wish.budget is None
    ):
        return ThinkingFields(room, ignored=ignored)
    if budget is not None and max_tokens is None and budget >= room:
        if room <= _OUTPUT_UNSAID:
            room += budget
        else:
            budget = room // 2
    if _is_barred(fields, said) or (
        budget is not None and (room <= BUDGET_MIN or _lacks_thought(said))
    ):
        return ThinkingFields(room, None, effort, (*ignored, wish.where))
    if budget is None:
        dropped = (wish.where,) if wish.budget is not None else ()
        return ThinkingFields(room, {"type": "adaptive"}, effort, (*ignored, *dropped))
    tokens = max(BUDGET_MIN, min(budget, room - 1))
    return ThinkingFields(room, {"type": "enabled", "budget_tokens": tokens}, effort, ignored)


def _budget(wish: Thinking, options: WriterOptions) -> int | None:
    if ADAPTIVE_ONLY in options.quirks:
        return None
    if wish.budget is not None:
        return wish.budget
    if BUDGETS_ONLY not in options.quirks:
        return None
    effort = wish.effort
    return _BUDGETS[_USUAL if effort is None or effort == "none" else effort]


def _effort(wish: Thinking) -> str | None:
    return None if wish.effort is None else _EFFORTS.get(wish.effort)


def _is_barred(fields: dict[str, Any], said: Conversation) -> bool:
    """Whether nobody may think here: a call is forced, or the answer goes on from given text."""
    forced = fields.get("tool_choice", {}).get("type") in ("any", "tool")
    return forced or said.messages[-1]["role"] == "assistant"


def _lacks_thought(said: Conversation) -> bool:
    """Whether the last assistant's message waits for results and does not begin with a thought."""
    for message in reversed(said.messages):
        if message["role"] == "assistant":
            blocks = message["content"]
            calls = any(block["type"] == "tool_use" for block in blocks)
            return calls and blocks[0]["type"] not in ("thinking", "redacted_thinking")
        if all(block["type"] != "tool_result" for block in message["content"]):
            return False
    return False
