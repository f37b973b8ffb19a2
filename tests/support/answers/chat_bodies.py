"""Chat Completions bodies, read or refused, for the tests of the reader."""

from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import ChatPrompt, GenerateRequest
from smg_node.dialects.chat.dialect import ChatDialect
from smg_node.dialects.chat.view import ChatView
from smg_node.dialects.dialect import ParsedBody
from smg_node.dialects.options import ReaderOptions

BASE: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def read(options: ReaderOptions | None = None, /, **parameters: Any) -> ParsedBody[ChatView]:
    return ChatDialect(options or ReaderOptions()).read({**BASE, **parameters})


def request_of(**parameters: Any) -> GenerateRequest:
    return read(**parameters).request


def prompt_of(**parameters: Any) -> ChatPrompt:
    (prompt,) = request_of(**parameters).prompts
    assert isinstance(prompt, ChatPrompt)
    return prompt


def refusal(options: ReaderOptions | None = None, /, **parameters: Any) -> SmgError:
    with pytest.raises(SmgError) as caught:
        read(options, **parameters)
    assert caught.value.status == 400
    return caught.value
