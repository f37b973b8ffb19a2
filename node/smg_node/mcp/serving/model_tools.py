"""Model tools: models as tools of the node's own MCP server: their names and arguments, and the chat that a call becomes. Pure.

At the address of all servers such a tool is `models__NAME`, at `/mcp/models` it is NAME; a server of an operator's with
the name `models` goes before both. NAME is the model's own with `_` for what tools' names may not have, and six digits of
a digest where that is too long or the name of another one.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from smg_node.core.generation.answer import Answer
from smg_node.mcp.serving.offered_tools import qualified

LABEL: Final = "models"
NAME_CHARACTERS_MAX: Final = 54
"""With what stands before them these names have 62 characters: vendors' APIs take 64."""
_DIGITS: Final = 6
_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]")
_PASSED: Final = ("max_tokens", "temperature", "top_p", "stop", "seed")
_MESSAGES: Final[Mapping[str, Any]] = {
    "type": "array",
    "description": "A conversation, its last message the one to answer; instead of a prompt.",
    "items": {
        "type": "object",
        "properties": {
            "role": {"type": "string", "enum": ["system", "user", "assistant"]},
            "content": {"type": "string"},
        },
        "required": ["role", "content"],
    },
}
_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "prompt": {"type": "string", "description": "What to ask; instead of messages."},
        "system": {"type": "string", "description": "How to answer; beside a prompt only."},
        "messages": _MESSAGES,
        "max_tokens": {
            "type": "integer",
            "minimum": 1,
            "description": "The longest answer, in tokens, with what the model thinks before it.",
        },
        "temperature": {"type": "number", "minimum": 0, "maximum": 2},
        "top_p": {"type": "number", "minimum": 0, "maximum": 1},
        "stop": {"type": "array", "items": {"type": "string"}},
        "seed": {"type": "integer"},
    },
    "additionalProperties": False,
}


class ArgumentError(ValueError):
    """Why arguments of a call cannot be meant; names the argument."""


class ModelTool(NamedTuple):
    """One model under the name that clients know. `description` is the operator's, "" for none."""

    name: str
    model: str
    description: str

    def row(self) -> dict[str, Any]:
        """Return it as `tools/list` has it."""
        return {
            "name": self.name,
            "title": self.model,
            "description": self.description or f"Asks the model {self.model}: returns its answer.",
            "inputSchema": _SCHEMA,
            # Each answer is another one, and all that it changes is what is left of a limit.
            "annotations": {"readOnlyHint": True, "openWorldHint": False},
        }


def model_tools(exposed: Mapping[str, str], *, plain: bool) -> tuple[ModelTool, ...]:
    """Return the tools of models by their descriptions. `plain`: without what stands before them among all tools.

    A name depends on all models that are exposed, whoever asks: the same tool has it for everybody.
    """
    spelled = {model: _OTHER.sub("_", model)[:NAME_CHARACTERS_MAX] for model in exposed}
    counts = Counter(spelled.values())
    found: list[ModelTool] = []
    for model, description in sorted(exposed.items()):
        name = spelled[model]
        is_own = name == model
        if not is_own and (counts[name] > 1 or len(model) > NAME_CHARACTERS_MAX):
            digest = hashlib.blake2b(model.encode("utf-8", "replace")).hexdigest()[:_DIGITS]
            name = f"{name[: NAME_CHARACTERS_MAX - _DIGITS - 1]}_{digest}"
        shown = name if plain else qualified(LABEL, name)
        found.append(ModelTool(shown, model, description))
    return tuple(found)


def chat_body(model: str, arguments: Mapping[str, Any], *, streamed: bool) -> dict[str, Any]:
    """Return the body of a chat that means the same as a call; ArgumentError says what is no argument of one.

    What the values may be is the reader's of chats to say, whose paths are those of the arguments.
    """
    for key in arguments:
        if key not in _SCHEMA["properties"]:
            known = ", ".join(_SCHEMA["properties"])
            raise ArgumentError(f"{key[:64]!r} is none of {known}")
    told = {key: value for key, value in arguments.items() if value is not None}
    body: dict[str, Any] = {key: told[key] for key in _PASSED if key in told}
    return {"model": model, "messages": _messages(told), "stream": streamed, **body}


def _messages(told: Mapping[str, Any]) -> Any:
    if ("prompt" in told) is ("messages" in told):
        raise ArgumentError("give a prompt or messages, one of the two")
    if "messages" in told:
        if "system" in told:
            raise ArgumentError("system stands beside a prompt; of messages it is the first one")
        return told["messages"]
    for key in ("prompt", "system"):
        if not isinstance(told.get(key, ""), str):
            raise ArgumentError(f"{key} must be a string")
    turns: Sequence[dict[str, Any]] = [{"role": "user", "content": told["prompt"]}]
    return [{"role": "system", "content": told["system"]}, *turns] if "system" in told else turns


def answered(answer: Answer) -> dict[str, Any]:
    """Return an answer as a tool's result: its text; how it ended and what it cost stand in `_meta`.

    An answer that ended before its first word is a call that failed: a client that is a model must not take nothing
    for the answer.
    """
    (choice,) = answer.choices
    told = [block.text for block in choice.blocks if block.kind in ("text", "refusal")]
    text, usage = "".join(told), answer.usage
    reason = "stop" if choice.finish is None else choice.finish.reason
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}]}
    if not text and reason == "length":
        why = f"tool failed: all of its {usage.completion_tokens} tokens went into thoughts"
        result = {"content": [{"type": "text", "text": why}], "isError": True}
    result["_meta"] = {
        "smg-node/finish-reason": reason,
        "smg-node/usage": {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
        },
    }
    return result
