"""Response object: the public object of a response, at any moment of its life.

Keys that one of the two public schemas demands are always there. Parameters that the client did not
set are shown with their effective values: numbers, never null.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from smg_node.core.generation.events import UNSAID, Usage
from smg_node.dialects.openai.frames import json_line
from smg_node.dialects.responses.events.final_status import FinalStatus
from smg_node.dialects.responses.items.item_document import ItemDoc, list_of
from smg_node.dialects.responses.request.response_request import ResponseRequest

_TEXT: Final = {"type": "text"}


def usage_object(usage: Usage) -> dict[str, Any]:
    """Return `usage` of the public object."""
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }


class ResponseObject:
    """Object of one response; its constant part is put together once."""

    __slots__ = ("_created_s", "_echo", "_id", "_said")

    def __init__(self, ask: ResponseRequest, *, response_id: str, created_s: int) -> None:
        self._id = response_id
        self._created_s = created_s
        self._said = ask.echo
        self._echo = {name: msgspec.Raw(json_line(value)) for name, value in _echo(ask).items()}

    def drawn_with(self, *, temperature: float, top_p: float) -> None:
        """Show these values where the client set none: they are known when the generation begins."""
        for name, value in (("temperature", temperature), ("top_p", top_p)):
            if name not in self._said:
                self._echo[name] = msgspec.Raw(json_line(value))

    def body(
        self,
        status: str,
        output: Sequence[ItemDoc],
        *,
        ended: FinalStatus | None = None,
        usage: Usage | None = None,
    ) -> bytes:
        """Return the object as one line of JSON."""
        reason = None if ended is None else ended.reason
        completed_s = ended.completed_s if ended is not None and status == "completed" else None
        return json_line(
            {
                "id": self._id,
                "object": "response",
                "created_at": self._created_s,
                "status": status,
                "completed_at": completed_s,
                "error": None if ended is None else ended.error_shown(),
                "incomplete_details": None if reason is None else {"reason": reason},
                "output": msgspec.Raw(list_of(output)),
                "usage": None if usage is None else usage_object(usage),
                **self._echo,
            }
        )


def _echo(ask: ResponseRequest) -> dict[str, Any]:
    """Return the part of the request that an answer repeats."""
    said = ask.echo
    echo: dict[str, Any] = {
        "model": ask.model,
        "background": ask.background,
        "store": ask.store,
        "instructions": ask.instructions,
        "previous_response_id": ask.previous_response_id or None,
        "max_output_tokens": said.get("max_output_tokens"),
        "max_tool_calls": said.get("max_tool_calls"),
        "parallel_tool_calls": said.get("parallel_tool_calls", True),
        "temperature": said.get("temperature", UNSAID),
        "top_p": said.get("top_p", UNSAID),
        "presence_penalty": said.get("presence_penalty", 0.0),
        "frequency_penalty": said.get("frequency_penalty", 0.0),
        "top_logprobs": said.get("top_logprobs", 0),
        "tool_choice": said.get("tool_choice", "auto"),
        "tools": said.get("tools", ()),
        "text": {
            "format": said.get("format", _TEXT),
            "verbosity": said.get("verbosity", "medium"),
        },
        "reasoning": said.get("reasoning", {"effort": None, "summary": None}),
        "truncation": ask.truncation,
        "service_tier": "default",
        "metadata": ask.metadata,
        "safety_identifier": said.get("safety_identifier"),
        "prompt_cache_key": said.get("prompt_cache_key"),
        "user": said.get("user"),
    }
    if ask.conversation_id:
        echo["conversation"] = {"id": ask.conversation_id}
    return echo
