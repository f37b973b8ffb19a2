"""Variables of the chat template that parameters stand for: effort, thinking, verbosity, the client's own."""

from typing import Final

from smg_node.core.cursor import Cursor, kind_of
from smg_node.dialects.openai.draft import Draft, Take

_KWARGS_MAX: Final = 64
# Variables and functions the renderer provides; a client that set them would answer for us.
_OWNED: Final = frozenset(
    {
        "messages", "tools", "documents", "add_generation_prompt", "continue_final_message",
        "chat_template", "conversation", "tokenize", "raise_exception", "strftime_now", "bos_token",
        "eos_token", "pad_token", "unk_token",
    }
)  # fmt: skip
_EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_NUMERIC_EFFORT_MAX: Final = 1e9


def take_kwargs(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `chat_template_kwargs`: variables for the template, except those the renderer owns."""
    kwargs = cursor.object(key)
    if kwargs is None:
        return
    if len(kwargs.values) > _KWARGS_MAX:
        cursor.problem(key, f"must have at most {_KWARGS_MAX} entries, has {len(kwargs.values)}")
        return
    for name in kwargs.values:
        if name in _OWNED:
            kwargs.problem(name, "is set by the gateway")
    draft.prompt["kwargs"] = kwargs.values


def take_effort(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `reasoning_effort`, a word or a number.

    Most templates have no levels but a switch, called `enable_thinking` or `thinking`: it goes off for
    `none` and `minimal`. A template reads only what it knows, so all spellings are set.
    """
    value = cursor.values[key]
    effort: str | float | None
    if type(value) is str:
        effort = cursor.word(key, _EFFORTS)
    elif type(value) in (int, float):
        effort = cursor.number(key, low=0, high=_NUMERIC_EFFORT_MAX)
    else:
        cursor.problem(key, f"must be a string or a number, not {kind_of(value)}", "invalid_type")
        return
    if effort is None:
        return
    draft.template["reasoning_effort"] = value
    if effort in ("none", "minimal"):
        draft.template.setdefault("enable_thinking", False)
        draft.template.setdefault("thinking", False)


def take_thinking(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take a switch for thinking: `enable_thinking: false`, or `thinking: {"type": "disabled"}`."""
    value = cursor.values[key]
    on = value if type(value) is bool else None
    if type(value) is dict and key == "thinking":
        switch = Cursor(value, cursor.problems, cursor, key)
        word = switch.word("type", ("enabled", "disabled"), required=True)
        on = None if word is None else word == "enabled"
        if switch.has("budget_tokens"):
            switch.unsupported(
                "budget_tokens", "is not supported by the engines behind this gateway"
            )
    elif on is None:
        cursor.problem(key, f"must be a boolean, not {kind_of(value)}", "invalid_type")
    if on is not None:
        draft.template["enable_thinking"] = on
        draft.template["thinking"] = on


def take_verbosity(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `verbosity`; a template that does not read it is not changed by it."""
    value = cursor.word(key, ("low", "medium", "high"))
    if value is not None:
        draft.template["verbosity"] = value


VARIABLES: Final[dict[str, Take]] = {
    "chat_template_kwargs": take_kwargs,
    "reasoning_effort": take_effort,
    "enable_thinking": take_thinking,
    "thinking": take_thinking,
    "verbosity": take_verbosity,
}
