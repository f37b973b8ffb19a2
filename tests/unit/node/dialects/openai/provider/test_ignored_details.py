"""What writers for vendors share."""

from typing import Any

import pytest

from smg_node.core.generation.request import ChatPrompt, GenerateRequest, MediaPart, Sampling, Turn
from smg_node.dialects.converse.writer import converse_fields
from smg_node.dialects.gemini.provider.writer import write
from smg_node.dialects.messages.provider.writer import messages_fields
from smg_node.dialects.provider_dialect import WriterOptions, ignored_details

PIXEL = "data:image/png;base64,iVBORw0KGgo="
SHOWN = Turn(
    "user",
    (
        MediaPart("image", PIXEL, "messages[0].content[0].image_url", "low"),
        MediaPart("image", PIXEL, "messages[0].content[1].image_url", "auto"),
        MediaPart("image", PIXEL, "messages[0].content[2].image_url"),
    ),
)
UNHEARD = "messages[0].content[0].image_url.detail"


def test_a_detail_that_is_not_said_to_a_vendor_has_a_path() -> None:
    assert ignored_details(ChatPrompt((SHOWN,))) == [UNHEARD]
    assert ignored_details(ChatPrompt((Turn("user", "hi"),))) == []


@pytest.mark.parametrize("writer", [converse_fields, write, messages_fields])
def test_vendors_without_a_word_for_it_ignore_the_detail_of_pictures(writer: Any) -> None:
    request = GenerateRequest("m", (ChatPrompt((SHOWN,)),), Sampling(), stream=True)
    assert UNHEARD in writer(request, WriterOptions("some-model", "someone")).ignored
