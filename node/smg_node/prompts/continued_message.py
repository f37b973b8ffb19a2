"""Continued message: the last message of a prompt, left open so that the answer goes on in it. Pure."""

from typing import Any, Final

from smg_node.core.errors import invalid
from smg_node.prompts.analysis.template_facts import TemplateFacts
from smg_node.prompts.message_forms import Message

# Stands where the answer goes on; ends in a space, so that a template that strips texts is noticed.
_GOES_ON: Final = "smgGoesOnHere "


def open_ended(message: Message, facts: TemplateFacts) -> Message:
    """Return the last message with a mark at its end, where the answer goes on."""
    content = message["content"]
    if isinstance(content, list) and content and "text" in content[-1]:
        last = content[-1]
        ended: Any = [*content[:-1], {**last, "text": last["text"] + _GOES_ON}]
    elif isinstance(content, list) or facts.content == "parts":
        ended = [*(content or []), {"type": "text", "text": _GOES_ON}]
    else:
        ended = (content or "") + _GOES_ON
    return {**message, "content": ended}


def cut_open(text: str, where: str) -> str:
    """Return `text` up to the mark; INVALID_REQUEST at the path `where` if it was not printed."""
    word = _GOES_ON.rstrip()
    at = text.rfind(word)
    if at < 0:
        raise invalid(
            "the chat template does not print the last message, so it cannot be continued",
            where,
        )
    if text.startswith(_GOES_ON, at):
        return text[:at]
    return text[:at].rstrip()
