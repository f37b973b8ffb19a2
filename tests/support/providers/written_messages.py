"""Bodies of a vendor's Messages as its writer makes them, each held to the strict judge."""

from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.opaque import Opaque
from smg_node.core.generation.request import ChatPrompt, GenerateRequest, Sampling, ToolCall, Turn
from smg_node.dialects.messages.provider.dialect import PROVIDER
from smg_node.dialects.provider_dialect import WriterOptions
from support.providers.strict_messages import refusal

OPTIONS = WriterOptions("claude-x", "anthropic", output_max=8_000)
USER = Turn("user", "Hi")
SIGNED = Opaque("anthropic", "signature", "c2lnbmVk+/==")


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def asked(*turns: Turn, sampling: Sampling | None = None, **prompt: Any) -> GenerateRequest:
    said = ChatPrompt(turns or (USER,), **prompt)
    return GenerateRequest("ours", (said,), sampling or Sampling(), True)


def written(
    request: GenerateRequest, options: WriterOptions = OPTIONS
) -> tuple[dict[str, Any], tuple[str, ...]]:
    found = PROVIDER.write(request, options)
    assert refusal(found.fields) == ""
    return found.fields, found.ignored


def messages(*turns: Turn, **prompt: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = written(asked(*turns, **prompt))[0]["messages"]
    return found


def refused(request: GenerateRequest, options: WriterOptions = OPTIONS) -> str | None:
    with pytest.raises(SmgError) as caught:
        PROVIDER.write(request, options)
    return caught.value.where


def calls(*named: tuple[str, str]) -> Turn:
    return Turn("assistant", None, calls=tuple(ToolCall(one, name, "{}") for one, name in named))
