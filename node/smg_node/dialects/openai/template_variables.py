"""Template variables from parameters: the client's own, verbosity, and thinking."""

from typing import Final

from smg_node.core.json_cursor import Cursor
from smg_node.dialects.openai.request_draft import Draft, Take
from smg_node.dialects.openai.thinking import THINKING

_KWARGS_MAX: Final = 64
# Variables and functions the renderer provides; a client that set them would answer for us.
_OWNED: Final = frozenset(
    {
        "messages", "tools", "documents", "add_generation_prompt", "continue_final_message",
        "chat_template", "conversation", "tokenize", "raise_exception", "strftime_now", "bos_token",
        "eos_token", "pad_token", "unk_token",
    }
)  # fmt: skip


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


def take_verbosity(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `verbosity`; a template that does not read it is not changed by it."""
    value = cursor.word(key, ("low", "medium", "high"))
    if value is not None:
        draft.template["verbosity"] = value


VARIABLES: Final[dict[str, Take]] = {
    "chat_template_kwargs": take_kwargs,
    **THINKING,
    "verbosity": take_verbosity,
}
