"""Context edits: `context_management`, by which a client has old thoughts and old results of tools left out.

What is asked for is read here, and done to the turns of the history. A reader has no tokenizer: where an
edit counts in tokens, four characters are taken for one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import replace

from smg_node.core.generation.request import MediaPart, TextPart, ToolCall, Turn
from smg_node.core.json_cursor import Cursor

CLEAR_THINKING: Final = "clear_thinking_20251015"
CLEAR_TOOL_USES: Final = "clear_tool_uses_20250919"
COMPACT: Final = "compact_20260112"
CLEARED: Final = "[cleared: this result is no longer shown]"
"""Stands in place of a result that was left out."""
_EDITS: Final = (CLEAR_THINKING, CLEAR_TOOL_USES, COMPACT)
_EDITS_MAX: Final = 16
_NAMES_MAX: Final = 1_024
_TOKENS_DEFAULT: Final = 100_000
_KEPT_DEFAULT: Final = 3
_TOKEN_CHARACTERS: Final = 4
_EMPTY_INPUT: Final = "{}"


@dataclass(slots=True)
class ToolUsesEdit:
    """Which results are left out, and when.

    `tokens` or `uses` is what the history must exceed. The last `keep` results stay, and those of the
    tools `excluded`. Less than `at_least` tokens are not worth it. `inputs` are the tools whose arguments
    are left out too; None for all of them.
    """

    tokens: int | None = _TOKENS_DEFAULT
    uses: int | None = None
    keep: int = _KEPT_DEFAULT
    at_least: int = 0
    excluded: tuple[str, ...] = ()
    inputs: tuple[str, ...] | None = ()


@dataclass(slots=True)
class Edits:
    """The edits of one request. `thinking_turns` is None where all thoughts stay."""

    thinking_asked: bool = False
    thinking_turns: int | None = 0
    tool_uses: ToolUsesEdit | None = None


def read_edits(cursor: Cursor, key: str) -> Edits | None:
    """Return the edits that are asked for at `key`; None without any."""
    management = cursor.object(key)
    if management is None:
        return None
    management.only(("edits",))
    edits = Edits()
    asked = False
    for edit in management.objects("edits", at_most=_EDITS_MAX):
        kind = edit.word("type", _EDITS, required=True)
        asked = asked or kind is not None
        if kind == CLEAR_THINKING:
            _read_clear_thinking(edit, edits)
        elif kind == CLEAR_TOOL_USES:
            edits.tool_uses = _read_clear_tool_uses(edit)
        elif kind == COMPACT:
            management.problems.ignored.append(edit.path())
    return edits if asked else None


def _read_clear_thinking(edit: Cursor, edits: Edits) -> None:
    edit.only(("type", "keep"))
    edits.thinking_asked = True
    edits.thinking_turns = 1
    keep = edit.values.get("keep")
    if keep is None:
        return
    if keep == "all":
        edits.thinking_turns = None
        return
    if type(keep) is str:
        edit.problem("keep", "must be 'all' or an object")
        return
    counted = edit.object("keep")
    if counted is None:
        return
    kind = counted.word("type", ("all", "thinking_turns"), required=True)
    if kind == "all":
        edits.thinking_turns = None
    elif kind is not None:
        edits.thinking_turns = counted.integer("value", low=1, required=True)


def _read_clear_tool_uses(edit: Cursor) -> ToolUsesEdit:
    edit.only(("type", "trigger", "keep", "clear_at_least", "exclude_tools", "clear_tool_inputs"))
    made = ToolUsesEdit()
    trigger = edit.object("trigger")
    if trigger is not None:
        kind = trigger.word("type", ("input_tokens", "tool_uses"), required=True)
        value = trigger.integer("value", low=1, required=True)
        made.tokens, made.uses = (None, value) if kind == "tool_uses" else (value, None)
    keep = edit.object("keep")
    if keep is not None:
        keep.word("type", ("tool_uses",), required=True)
        made.keep = keep.integer("value", low=0, required=True) or 0
    least = edit.object("clear_at_least")
    if least is not None:
        least.word("type", ("input_tokens",), required=True)
        made.at_least = least.integer("value", low=0, required=True) or 0
    made.excluded = _names(edit, "exclude_tools")
    inputs = edit.values.get("clear_tool_inputs")
    if type(inputs) is bool:
        made.inputs = None if inputs else ()
    else:
        made.inputs = _names(edit, "clear_tool_inputs")
    return made


def _names(edit: Cursor, key: str) -> tuple[str, ...]:
    names = edit.array(key, at_most=_NAMES_MAX)
    found = names and edit.elements(key, str, "a string", names)
    return tuple(found or ())


# ── What is done ─────────────────────────────────────────────────────────────


def first_thought(messages: Sequence[Any], edits: Edits | None) -> int:
    """Return the place of the first message whose thoughts stay.

    Without an edit they are those of the turn that is going on: since a user last said something.
    """
    turns = 0 if edits is None or not edits.thinking_asked else edits.thinking_turns
    if turns is None:
        return 0
    answered = False
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if type(message) is not dict:
            continue
        if message.get("role") == "assistant":
            answered = True
        elif message.get("role") == "user" and has_user_text(message.get("content")):
            turns -= answered
            answered = False
            if turns <= 0:
                return place
    return 0


def has_user_text(content: Any) -> bool:
    """Whether the content of a user's message is more than results of tools."""
    if type(content) is not list:
        return True
    return any(type(block) is not dict or block.get("type") != "tool_result" for block in content)


def tool_uses_cleared(
    turns: Sequence[Turn], edit: ToolUsesEdit, *, more_characters: int = 0
) -> tuple[tuple[Turn, ...], dict[str, object] | None]:
    """Return the turns after an edit, and what is told of it; the same turns and None where it does not apply.

    `more_characters` are those of the prompt besides the turns.
    """
    uses = _uses(turns)
    if edit.uses is not None and len(uses) <= edit.uses:
        return tuple(turns), None
    if edit.tokens is not None:
        characters = more_characters + sum(_characters(turn) for turn in turns)
        if characters // _TOKEN_CHARACTERS <= edit.tokens:
            return tuple(turns), None
    old = uses[: len(uses) - edit.keep] if edit.keep else uses
    changed = list(turns)
    cleared = saved = 0
    for caller, at, answer in old:
        call = changed[caller].calls[at]
        result = changed[answer]
        if call.name in edit.excluded or result.content == CLEARED:
            continue
        cleared += 1
        saved += _characters(result) - len(CLEARED)
        changed[answer] = replace(result, content=CLEARED, references=())
        if edit.inputs is None or call.name in edit.inputs:
            saved += len(call.arguments) - len(_EMPTY_INPUT)
            changed[caller] = _without_input(changed[caller], at)
    tokens = max(0, saved) // _TOKEN_CHARACTERS
    if not cleared or tokens < edit.at_least:
        return tuple(turns), None
    told: dict[str, object] = {
        "type": CLEAR_TOOL_USES,
        "cleared_tool_uses": cleared,
        "cleared_input_tokens": tokens,
    }
    return tuple(changed), told


def thinking_edit(turns: int, characters: int) -> dict[str, object]:
    """Return what is told of thoughts that were left out."""
    return {
        "type": CLEAR_THINKING,
        "cleared_thinking_turns": turns,
        "cleared_input_tokens": characters // _TOKEN_CHARACTERS,
    }


def _uses(turns: Sequence[Turn]) -> list[tuple[int, int, int]]:
    """Return the calls with a result, oldest first: place of the turn, of the call in it, of the result."""
    uses: list[tuple[int, int, int]] = []
    waiting: dict[str, tuple[int, int]] = {}
    for place, turn in enumerate(turns):
        if turn.calls:
            waiting = {call.call_id: (place, at) for at, call in enumerate(turn.calls)}
        elif turn.answers_call in waiting:
            uses.append((*waiting.pop(turn.answers_call), place))
    return uses


def _without_input(turn: Turn, at: int) -> Turn:
    calls = list(turn.calls)
    call = calls[at]
    calls[at] = ToolCall(call.call_id, call.name, _EMPTY_INPUT)
    blocks = tuple(
        replace(block, text=_EMPTY_INPUT)
        if block.kind == "call" and block.call_id == call.call_id
        else block
        for block in turn.blocks
    )
    return replace(turn, calls=tuple(calls), blocks=blocks)


def _characters(turn: Turn) -> int:
    content = turn.content or ""
    said = len(content) if isinstance(content, str) else sum(_length(part) for part in content)
    return said + len(turn.reasoning or "") + sum(len(call.arguments) for call in turn.calls)


def _length(part: TextPart | MediaPart) -> int:
    return len(part.text) if isinstance(part, TextPart) else 0
