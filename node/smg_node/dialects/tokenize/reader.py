"""Reader of `/v1/tokenize` and `/v1/detokenize` bodies.

The ids must be those a generation would use, so the prompt is read by the functions of the chat and
completions readers, with the same defaults.
"""

from typing import Any, Final

import msgspec

from smg_node.core.generation.request import Prompt, TokenIds, TokenPrompt
from smg_node.core.json_cursor import Cursor, kind_of
from smg_node.dialects.chat.template_parameters import TEMPLATE, prompt_of, settle_prompt
from smg_node.dialects.chat.tools import TOOLS
from smg_node.dialects.completions.prompt import read_prompts
from smg_node.dialects.openai.extras import take_model
from smg_node.dialects.openai.request_draft import Draft, Take, problems_for, take_all
from smg_node.dialects.options import ReaderOptions


class TokenizeBody(msgspec.Struct, frozen=True):
    """What to tokenize; `many`: the client sent a list, so the answer has one too."""

    model: str
    prompts: tuple[Prompt, ...]
    many: bool
    ignored: tuple[str, ...] = ()


class DetokenizeBody(msgspec.Struct, frozen=True):
    """What to detokenize; `many`: the client sent a list of lists, so the answer has a list too."""

    model: str
    ids: tuple[TokenIds, ...]
    many: bool
    skip_special_tokens: bool
    ignored: tuple[str, ...] = ()


def _take_prompt(draft: Draft, cursor: Cursor, key: str) -> None:
    value = cursor.values[key]
    if type(value) is list and value and type(value[0]) is not str:
        cursor.problem(
            key, f"must be an array of strings, not {kind_of(value[0])}", "invalid_type", 0
        )
        return
    draft.request["prompts"] = read_prompts(
        cursor,
        key,
        prompts_max=draft.options.choices_max,
        add_special_tokens=cursor.values.get("add_special_tokens") is not False,
    )


def _take_tokens(draft: Draft, cursor: Cursor, key: str) -> None:
    value = cursor.array(key)
    if not value:
        draft.request["prompts"] = ()
        return
    if type(value[0]) is str:
        cursor.problem(key, "must be a token id, not a string", "invalid_type", 0)
        return
    draft.request["prompts"] = read_prompts(
        cursor, key, prompts_max=draft.options.choices_max, add_special_tokens=False
    )


def _take_skip(draft: Draft, cursor: Cursor, key: str) -> None:
    value = cursor.flag(key)
    if value is not None:
        draft.request["skip_special_tokens"] = value


TOKENIZE: Final[dict[str, Take]] = {
    **TEMPLATE,
    **TOOLS,
    "model": take_model,
    "prompt": _take_prompt,
}
DETOKENIZE: Final[dict[str, Take]] = {
    "model": take_model,
    "tokens": _take_tokens,
    "skip_special_tokens": _take_skip,
}


def read_tokenize(body: dict[str, Any], options: ReaderOptions) -> TokenizeBody:
    """Return what to tokenize: `prompt` (a string or a list of strings) or `messages`."""
    draft, cursor = _read(body, options, TOKENIZE)
    if cursor.has("prompt"):
        if cursor.has("messages"):
            cursor.problem("messages", "cannot be combined with prompt")
    elif cursor.has("messages"):
        settle_prompt(draft, cursor)
    else:
        cursor.problem("prompt", "prompt or messages is required", "missing_required_parameter")
    cursor.problems.check()
    prompts = draft.request["prompts"] if cursor.has("prompt") else (prompt_of(draft),)
    return TokenizeBody(
        draft.request["model"],
        prompts,
        type(body.get("prompt")) is list,
        draft.ignored_in(cursor.problems),
    )


def read_detokenize(body: dict[str, Any], options: ReaderOptions) -> DetokenizeBody:
    """Return what to detokenize: `tokens`, a list of ids or a list of such lists.

    An empty list is the empty text.
    """
    draft, cursor = _read(body, options, DETOKENIZE)
    if not cursor.has("tokens"):
        cursor.raw("tokens", required=True)
    cursor.problems.check()
    tokens: list[Any] = body["tokens"]
    prompts: tuple[Prompt, ...] = draft.request["prompts"]
    ids = tuple(prompt.ids for prompt in prompts if isinstance(prompt, TokenPrompt))
    many = bool(tokens) and type(tokens[0]) is list
    skip: bool = draft.request.get("skip_special_tokens", True)
    return DetokenizeBody(
        draft.request["model"], ids, many, skip, draft.ignored_in(cursor.problems)
    )


def _read(
    body: dict[str, Any], options: ReaderOptions, table: dict[str, Take]
) -> tuple[Draft, Cursor]:
    draft = Draft(options)
    cursor = Cursor(body, problems_for(options))
    take_all(draft, cursor, table)
    if "model" not in draft.request:
        cursor.raw("model", required=True)
    return draft, cursor
