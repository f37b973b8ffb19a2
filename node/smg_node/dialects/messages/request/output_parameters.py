"""Output parameters: how much to think, the form of the answer, and what of its thoughts is shown."""

from dataclasses import replace
from typing import Final

from smg_node.core.generation.request import Thinking, Turn
from smg_node.core.json_cursor import Cursor
from smg_node.dialects.messages.request.messages_draft import MessagesDraft
from smg_node.dialects.messages.request.system_messages import read_effort
from smg_node.dialects.openai.constraint import take_schema

_KINDS: Final = ("enabled", "disabled", "adaptive", "between_tools")
_DISPLAYS: Final = ("summarized", "omitted", "updates")
_MISMATCHES: Final = ("error", "drop_block")
_BUDGET_MIN: Final = 1_024
_KEYS: Final = {
    "enabled": ("type", "budget_tokens", "display", "block_binding"),
    "disabled": ("type",),
    "adaptive": ("type", "display", "block_binding"),
    "between_tools": ("type",),
}


def take_thinking(draft: MessagesDraft, cursor: Cursor, key: str) -> None:
    """Take `thinking`; whether it is on between tools is known when the history is read."""
    asked = cursor.object(key)
    kind = None if asked is None else asked.word("type", _KINDS, required=True)
    if asked is None or kind is None:
        return
    asked.only(_KEYS[kind])
    draft.thinking_kind = kind
    budget = asked.integer("budget_tokens", low=_BUDGET_MIN, required=kind == "enabled")
    _note(
        draft,
        on={"enabled": True, "disabled": False}.get(kind),
        adaptive=kind == "adaptive",
        budget=budget if kind == "enabled" else None,
        where=key,
    )
    if asked.word("display", _DISPLAYS) == "omitted" and kind != "disabled":
        draft.view["display"] = "omitted"
    binding = asked.object("block_binding")
    if binding is not None:
        binding.only(("prefix_mismatch_behavior",))
        if binding.word("prefix_mismatch_behavior", _MISMATCHES) == "drop_block":
            draft.dropped = []


def take_output_config(draft: MessagesDraft, cursor: Cursor, key: str) -> None:
    """Take `output_config`: effort, the schema of the answer, and a budget that is a hint."""
    config = cursor.object(key)
    if config is None:
        return
    config.only(("effort", "format", "task_budget"))
    effort = read_effort(config)
    if effort is not None:
        _note(draft, effort=effort, where=config.path("effort"))
    if config.has("format"):
        take_format(draft, config, "format")
    budget = config.object("task_budget")
    if budget is not None:
        budget.only(("type", "total", "remaining"))
        budget.word("type", ("tokens",), required=True)
        budget.integer("total", low=1, required=True)
        budget.integer("remaining", low=0)
        config.ignore("task_budget")


def take_format(draft: MessagesDraft, cursor: Cursor, key: str) -> None:
    """Take the form of an answer: a JSON Schema that it is held to."""
    wanted = cursor.object(key)
    if wanted is None or wanted.word("type", ("json_schema",), required=True) is None:
        return
    wanted.only(("type", "schema"))
    if wanted.raw("schema", required=True) is not None:
        take_schema(draft, wanted, "schema", strict=True)


def settle_thinking(draft: MessagesDraft, cursor: Cursor, turns: tuple[Turn, ...]) -> None:
    """Settle what depends on the history: the newest effort, thinking between tools, and a begun answer."""
    if draft.effort is not None:
        effort, where = draft.effort
        _note(draft, effort=effort, where=where)
    if draft.thinking_kind == "between_tools":
        _note(draft, on=bool(turns) and turns[-1].role == "tool")
    if not draft.prefilled:
        return
    if draft.thinking_kind == "enabled":
        cursor.problems.add(
            draft.prefilled,
            "an answer that begins with given text cannot be combined with thinking",
        )
    draft.prompt["continue_final_message"] = True
    draft.prompt["add_generation_prompt"] = False


def _note(draft: MessagesDraft, **said: object) -> None:
    before = draft.prompt.get("thinking", Thinking())
    draft.prompt["thinking"] = replace(before, **said)
