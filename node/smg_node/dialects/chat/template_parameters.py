"""Template parameters of a chat body: messages, documents, the client's template and its variables."""

from typing import Any, Final

from smg_node.core.generation.request import ChatPrompt
from smg_node.core.json_cursor import Cursor
from smg_node.dialects.chat.messages import PREFIXES, read_messages
from smg_node.dialects.openai.request_draft import Draft, Take
from smg_node.dialects.openai.template_variables import VARIABLES

_DOCUMENTS_MAX: Final = 1_024


def take_messages(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `messages`."""
    draft.prompt["turns"] = read_messages(cursor, key, draft.options)


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
    "chat_template": take_template,
    "documents": take_documents,
    "add_generation_prompt": _switch("add_generation_prompt"),
    "continue_final_message": _switch("continue_final_message"),
    "add_special_tokens": _switch("add_special_tokens"),
    **VARIABLES,
}


def settle_prompt(draft: Draft, cursor: Cursor) -> None:
    """Check what depends on several of these parameters."""
    prompt = draft.prompt
    if not cursor.has("messages"):
        cursor.raw("messages", required=True)
    prefix = _prefix(cursor)
    if prefix:
        if prompt.get("continue_final_message") is False:
            cursor.problems.add(prefix, "contradicts continue_final_message")
        prompt["continue_final_message"] = True
    if not prompt.get("continue_final_message"):
        return
    where = prefix or cursor.path("continue_final_message")
    if prompt.get("add_generation_prompt"):
        cursor.problems.add(where, "cannot be combined with add_generation_prompt")
    turns = prompt.get("turns") or ()
    if turns and (turns[-1].role != "assistant" or turns[-1].calls or not turns[-1].content):
        cursor.problems.add(where, "needs a last message of role 'assistant' with text to continue")
    prompt["add_generation_prompt"] = False


def _prefix(cursor: Cursor) -> str:
    """Return the path of the switch by which the last message says that the answer goes on from it; "" for none."""
    messages = cursor.values.get("messages")
    if type(messages) is not list or not messages or type(messages[-1]) is not dict:
        return ""
    last = messages[-1]
    found = [key for key in PREFIXES if last.get(key) is True]
    return f"{cursor.path('messages', len(messages) - 1)}.{found[0]}" if found else ""


def prompt_of(draft: Draft) -> ChatPrompt:
    """Return the prompt that the draft describes."""
    values: dict[str, Any] = draft.prompt
    if draft.template:
        values["kwargs"] = {**draft.template, **values.get("kwargs", {})}
    return ChatPrompt(**values)
