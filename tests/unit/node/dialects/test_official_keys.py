"""Every key of the official client's parameters, at any depth, is read, named as ignored, or refused."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from openai.types import completion_create_params, embedding_create_params
from openai.types.chat import completion_create_params as chat_params
from openai.types.responses import response_create_params

from smg_node.core.errors import SmgError
from smg_node.dialects.chat.reader import ChatReader
from smg_node.dialects.completions.reader import CompletionsReader
from smg_node.dialects.embeddings.reader import read_embeddings
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.responses.request.reader import ResponsesReader
from support.answers.plain_values import plain
from support.clients.sdk_parameters import KeyCase, key_cases

OPTIONS = ReaderOptions()
SERVED = ReaderOptions(tool_servers=True)
FUNCTION = {"type": "function", "function": {"name": "x"}}
CHAT = {
    "model": "m",
    "messages": [{"role": "user", "content": "hi"}],
    "stream": True,
    "tools": [FUNCTION],
}
COMPLETION = {"model": "m", "prompt": "hi", "stream": True}
RESPONSE = {
    "model": "m",
    "input": "hi",
    "stream": True,
    "tools": [{"type": "function", "name": "x"}],
}

CASES: list[tuple[str, Callable[[dict[str, Any]], Any], KeyCase]] = [
    (api, read, case)
    for api, read, params, around in (
        ("chat", ChatReader(OPTIONS).read, chat_params.CompletionCreateParamsBase, CHAT),
        (
            "completions",
            CompletionsReader(OPTIONS).read,
            completion_create_params.CompletionCreateParamsBase,
            COMPLETION,
        ),
        (
            "embeddings",
            lambda body: read_embeddings(body, OPTIONS),
            embedding_create_params.EmbeddingCreateParams,
            {"model": "m", "input": "hi"},
        ),
        (
            "responses",
            ResponsesReader(OPTIONS).read,
            response_create_params.ResponseCreateParamsBase,
            RESPONSE,
        ),
        (
            "responses with tools of ours",
            ResponsesReader(SERVED).read,
            response_create_params.ResponseCreateParamsBase,
            RESPONSE,
        ),
    )
    for case in key_cases(params, around)
]

# Keys that say what is assumed where they are absent.
ASSUMED = frozenset(
    {
        "messages[](ChatCompletionAssistantMessageParam).tool_calls[]"
        "(ChatCompletionMessageFunctionToolCallParam).type",
        "input[](EasyInputMessageParam).type",
        "input[](Message).type",
        "input[](ResponseOutputMessageParam).type",
        "input[](ItemReference).type",
    }
)

# Secrets of a hosted tool, which are repeated to nobody and not stored; the tool that is left out is named itself.
SECRETS = frozenset(
    f"{place}tools[](Mcp).{name}"
    for place in ("", "input[](AdditionalTools).")
    for name in ("authorization", "headers")
)


@pytest.mark.parametrize(
    "api", ["chat", "completions", "embeddings", "responses", "responses with tools of ours"]
)
def test_no_key_of_the_official_client_is_dropped_without_a_word(api: str) -> None:
    dropped = {
        case.path
        for name, read, case in CASES
        if name == api and not _told(read, case) and case.path not in ASSUMED | SECRETS
    }
    assert dropped == set()


def _told(read: Callable[[dict[str, Any]], Any], case: KeyCase) -> bool:
    """Whether a key changes what was read, is named, is refused, or stands in something that is."""
    if all(body == case.without or _empty(case, body) for body in case.bodies):
        return True
    place = re.sub(r"\(\w+\)", "", case.path).replace("[]", "[0]")
    before = _outcome(read, case.without)
    for body in case.bodies:
        after = _outcome(read, body)
        if after != before or any(_surrounds(name, place) for name in after.ignored):
            return True
    # What makes an object the kind that is refused is its type.
    refused = before.refused.removesuffix(".type")
    return bool(refused) and _surrounds(refused, place)


def _empty(case: KeyCase, body: dict[str, Any]) -> bool:
    """Whether a body differs by an empty object at its top: all keys of it have cases of their own."""
    return body == {**case.without, case.path: {}}


def _surrounds(outer: str, place: str) -> bool:
    return place.startswith((f"{outer}.", f"{outer}["))


@dataclass(frozen=True)
class _Outcome:
    """What came of a body: what was read, or the place and code of its refusal."""

    read: Any
    ignored: tuple[str, ...] = ()
    refused: str = ""
    code: str = ""


def _outcome(read: Callable[[dict[str, Any]], Any], body: dict[str, Any]) -> _Outcome:
    try:
        found = read(body)
    except SmgError as error:
        return _Outcome(None, (), error.where or "", error.code)
    request = getattr(found, "request", found)
    return _Outcome(plain(found), request.ignored)
