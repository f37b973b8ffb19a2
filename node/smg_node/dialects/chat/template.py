"""What the chat template is told, beyond the messages."""

from typing import Any, Final

from smg_node.core.cursor import Cursor, kind_of
from smg_node.core.request import ChatPrompt
from smg_node.dialects.chat.messages import read_messages
from smg_node.dialects.openai.draft import Draft, Take

_KWARGS_MAX: Final = 64
_DOCUMENTS_MAX: Final = 1_024
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


def take_messages(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `messages`."""
    draft.prompt["turns"] = read_messages(cursor, key, draft.options)


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


def take_template(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take the client's own `chat_template`, where that is allowed."""
    if not draft.options.template_from_request:
        cursor.unsupported(key, "is switched off on this gateway (templates.allow_from_request)")
        return
    draft.prompt["template"] = cursor.text(key, characters_min=1)


def take_documents(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `documents` for templates that quote them."""
    documents = [row.values for row in cursor.objects(key, at_most=_DOCUMENTS_MAX)]
    if documents:
        draft.prompt["documents"] = tuple(documents)


def _switch(name: str) -> Take:
    def take(draft: Draft, cursor: Cursor, key: str) -> None:
        value = cursor.flag(key)
        if value is not None:
            draft.prompt[name] = value

    return take


TEMPLATE: Final[dict[str, Take]] = {
    "messages": take_messages,
    "chat_template_kwargs": take_kwargs,
    "chat_template": take_template,
    "documents": take_documents,
    "add_generation_prompt": _switch("add_generation_prompt"),
    "continue_final_message": _switch("continue_final_message"),
    "add_special_tokens": _switch("add_special_tokens"),
    "reasoning_effort": take_effort,
    "enable_thinking": take_thinking,
    "thinking": take_thinking,
    "verbosity": take_verbosity,
}


def settle_prompt(draft: Draft, cursor: Cursor) -> None:
    """Check what depends on several of these parameters."""
    prompt = draft.prompt
    if not cursor.has("messages"):
        cursor.raw("messages", required=True)
    if not prompt.get("continue_final_message"):
        return
    if prompt.get("add_generation_prompt"):
        cursor.problem("continue_final_message", "cannot be combined with add_generation_prompt")
    turns = prompt.get("turns") or ()
    if turns and (turns[-1].role != "assistant" or turns[-1].calls or not turns[-1].content):
        cursor.problem(
            "continue_final_message",
            "needs a last message of role 'assistant' with text to continue",
        )
    prompt["add_generation_prompt"] = False


def prompt_of(draft: Draft) -> ChatPrompt:
    """Return the prompt that the draft describes."""
    values: dict[str, Any] = draft.prompt
    if draft.template:
        values["kwargs"] = {**draft.template, **values.get("kwargs", {})}
    return ChatPrompt(**values)
