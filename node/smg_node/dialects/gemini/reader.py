"""Reader of generateContent bodies: a table of parameters, and the function that takes each.

Which model answers, and whether it streams, stand in the path: `models/M:generateContent`. M may contain
slashes and colons.
"""

from functools import partial
from typing import Any, Final

from smg_node.core.generation.request import ChatPrompt, GenerateRequest
from smg_node.core.json_cursor import Cursor, quoted
from smg_node.dialects.dialect import Caller, ParsedBody
from smg_node.dialects.gemini.contents import read_contents, read_instruction
from smg_node.dialects.gemini.generation_config import take_generation_config
from smg_node.dialects.gemini.methods import COUNT, SSE, STREAM, asked_of
from smg_node.dialects.gemini.signatures import thought_in
from smg_node.dialects.gemini.spelling import both, names, spelled
from smg_node.dialects.gemini.tools import settle_choice, take_tool_config, take_tools
from smg_node.dialects.gemini.view import GeminiView
from smg_node.dialects.openai.request_draft import (
    Draft,
    Take,
    problems_for,
    refused,
    take_all,
)
from smg_node.dialects.openai.sampling import sampling_of, settle_sampling
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.thought_seals import ThoughtSeals

_MODEL_PREFIX: Final = "models/"
_MODEL_MAX: Final = 256
_SAFETY_KEYS: Final = names("category", "threshold", "method")
_NOT_BLOCKING: Final = frozenset({"BLOCK_NONE", "OFF", "HARM_BLOCK_THRESHOLD_UNSPECIFIED"})


def _take_contents(_draft: Draft, _cursor: Cursor, _key: str) -> None:
    """Leave it for later: how a thought is opened depends on the request around the body."""


def _take_instruction(draft: Draft, cursor: Cursor, key: str) -> None:
    turn = read_instruction(cursor, key, draft.options)
    if turn is not None:
        draft.prompt["turns"] = (turn,)


def _take_model(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take a second name of the model; the path's is the one that counts."""
    model = cursor.text(key, characters_max=_MODEL_MAX)
    if model is not None and model.removeprefix(_MODEL_PREFIX) != draft.request["model"]:
        draft.ignore(cursor.path(key))


def _take_safety(_draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `safetySettings`; one that asks to block is refused, for a safety wish is never dropped."""
    for setting in cursor.objects(key):
        setting.only(_SAFETY_KEYS)
        setting.text("category")
        setting.text("method")
        threshold = setting.text("threshold")
        if threshold is not None and threshold.upper() not in _NOT_BLOCKING:
            why = f"{quoted(threshold)} cannot be honoured: no engine here judges what it says"
            setting.unsupported("threshold", why)


def _hint_object(draft: Draft, cursor: Cursor, key: str) -> None:
    if cursor.object(key) is not None:
        draft.ignore(cursor.path(key))


def _hint_text(draft: Draft, cursor: Cursor, key: str) -> None:
    if cursor.text(key) is not None:
        draft.ignore(cursor.path(key))


def _hint_flag(draft: Draft, cursor: Cursor, key: str) -> None:
    if cursor.flag(key):
        draft.ignore(cursor.path(key))


_PARAMETERS: Final[dict[str, Take]] = both(
    {
        "contents": _take_contents,
        "systemInstruction": _take_instruction,
        "tools": take_tools,
        "toolConfig": take_tool_config,
        "generationConfig": take_generation_config,
        "safetySettings": _take_safety,
        "model": _take_model,
        "cachedContent": refused("is not supported: this gateway keeps no contents for clients"),
        "labels": _hint_object,
        "serviceTier": _hint_text,
        "store": _hint_flag,
    }
)
_COUNTED: Final = "generateContentRequest"


class GeminiReader:
    """Reads generateContent bodies."""

    def __init__(self, options: ReaderOptions, seals: ThoughtSeals) -> None:
        self._options = options
        self._seals = seals

    def read(self, body: dict[str, Any], caller: Caller) -> ParsedBody[GeminiView]:
        """Return the parsed body; INVALID_REQUEST names everything that is wrong with it."""
        model, method = asked_of(caller.values.get("id", ""))
        draft = Draft(self._options)
        cursor = Cursor(body, problems_for(self._options))
        draft.request["model"] = model
        if not 0 < len(model) <= _MODEL_MAX:
            cursor.problem("model", f"must have 1 to {_MODEL_MAX} characters")
        asked = _counted(cursor) if method == COUNT else cursor
        take_all(draft, asked, _PARAMETERS)
        opened = partial(thought_in, seals=self._seals, tenant=caller.tenant, model=model)
        turns = read_contents(asked, spelled(asked, "contents"), self._options, opened)
        draft.prompt["turns"] = (*draft.prompt.get("turns", ()), *turns)
        settle_choice(draft, asked)
        settle_sampling(draft, asked)
        cursor.problems.check()
        view = GeminiView(
            model,
            thoughts=draft.view.get("thoughts", False),
            array=method == STREAM and caller.query.get("alt") != SSE,
        )
        request = GenerateRequest(
            prompts=(ChatPrompt(where="contents", **draft.prompt),),
            sampling=sampling_of(draft),
            stream=method == STREAM,
            ignored=draft.ignored_in(cursor.problems),
            **draft.request,
        )
        return ParsedBody(request, view)


def _counted(cursor: Cursor) -> Cursor:
    """Return what is to be counted: the body itself, or the request in it."""
    key = spelled(cursor, _COUNTED)
    inside = cursor.object(key)
    if inside is None:
        return cursor
    for other, value in cursor.values.items():
        if other != key and value is not None:
            cursor.problem(other, f"cannot be combined with {key}")
    return inside
