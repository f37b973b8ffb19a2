"""Reader of Chat Completions bodies: a table of parameters, and the function that takes each.

Every parameter the API knows is a row of `PARAMETERS`; what it does stands beside its name in the
module the row comes from.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from smg_node.core.generation.request import GenerateRequest
from smg_node.core.json_cursor import Cursor
from smg_node.dialects.chat.fast_reader import PlainReader
from smg_node.dialects.chat.template_parameters import TEMPLATE, prompt_of, settle_prompt
from smg_node.dialects.chat.tools import TOOLS, may_ask, settle_tools
from smg_node.dialects.chat.view import ChatView
from smg_node.dialects.dialect import ParsedBody
from smg_node.dialects.openai.constraint import CONSTRAINTS
from smg_node.dialects.openai.extras import EXTRAS
from smg_node.dialects.openai.request_draft import (
    Draft,
    Take,
    problems_for,
    refused,
    shown,
    take_all,
)
from smg_node.dialects.openai.sampling import SAMPLING, sampling_of, settle_sampling
from smg_node.dialects.openai.streaming import STREAMING
from smg_node.dialects.options import ReaderOptions

_TOP_LOGPROBS_MAX: Final = 20
_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


def take_logprobs(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `logprobs`: a switch here, a number in Completions."""
    if cursor.flag(key):
        draft.sampling.setdefault("logprobs", 0)


def take_top_logprobs(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `top_logprobs`; more than none needs `logprobs`."""
    value = cursor.integer(key, low=0, high=_TOP_LOGPROBS_MAX)
    if not value:
        return
    if cursor.values.get("logprobs") is True:
        draft.draw("logprobs", value, key)
    else:
        cursor.problem(key, "is only allowed when logprobs is true")


def take_modalities(_draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `modalities`: engines answer in text."""
    values = cursor.array(key, at_least=1)
    names = values and cursor.elements(key, str, "a string", values)
    if names and names != ["text"]:
        cursor.unsupported(key, "only ['text'] is supported: engines answer in text")


PARAMETERS: Final[dict[str, Take]] = {
    **SAMPLING,
    **CONSTRAINTS,
    **STREAMING,
    **EXTRAS,
    **TEMPLATE,
    **TOOLS,
    "logprobs": take_logprobs,
    "top_logprobs": take_top_logprobs,
    "modalities": take_modalities,
    "audio": refused("is not supported: engines answer in text"),
    "echo": refused("is not supported in Chat Completions", lambda value: value is False),
    "separate_reasoning": shown("separate_reasoning"),
    "include_reasoning": shown("include_reasoning"),
    "stream_reasoning": shown("stream_reasoning"),
}


def _settle(draft: Draft, cursor: Cursor) -> None:
    settle_prompt(draft, cursor)
    settle_tools(draft, cursor)
    settle_sampling(draft, cursor)
    drawn = draft.sampling
    if draft.request.get("stream") and drawn.get("prompt_logprobs") is not None:
        cursor.unsupported("prompt_logprobs", "is only supported when stream is false")
    if draft.view.get("include_reasoning") is False and (
        drawn.get("logprobs") is not None or draft.view.get("token_ids")
    ):
        # Tokens of a thought would show what the text must not.
        cursor.problem(
            "include_reasoning", "false cannot be combined with logprobs or return_token_ids"
        )


class ChatReader:
    """Reads Chat Completions bodies."""

    def __init__(self, options: ReaderOptions) -> None:
        self._options = options
        self._plain = self._view({})
        quick = PlainReader(
            messages_max=options.messages_max,
            view=self._plain,
            with_usage=self._view({"include_usage": True}),
        )
        self.read_plain: Callable[[bytes], ParsedBody[ChatView] | None] = quick.read
        """Returns what a body asks for if it is a plain one; None for any other, right or wrong."""

    def read(
        self, body: dict[str, Any], headers: Mapping[str, str] = _NO_HEADERS
    ) -> ParsedBody[ChatView]:
        """Return the parsed body; INVALID_REQUEST names everything that is wrong with it."""
        draft = Draft(self._options)
        may_ask(draft, headers)
        cursor = Cursor(body, problems_for(self._options))
        take_all(draft, cursor, PARAMETERS)
        if "model" not in draft.request:
            cursor.raw("model", required=True)
        _settle(draft, cursor)
        cursor.problems.check()
        wanted = draft.request
        request = GenerateRequest(
            prompts=(prompt_of(draft),),
            sampling=sampling_of(draft),
            stream=wanted.pop("stream", False),
            ignored=draft.ignored_in(cursor.problems),
            **wanted,
        )
        return ParsedBody(request, self._view(draft.view) if draft.view else self._plain)

    def _view(self, wanted: dict[str, Any]) -> ChatView:
        options = self._options
        return ChatView(
            reasoning_field=options.reasoning_field, matched_stop=options.matched_stop, **wanted
        )
