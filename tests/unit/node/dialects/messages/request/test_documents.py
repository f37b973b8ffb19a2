"""Documents of every source: texts become frames in the turn, others files whose content is looked at later."""

import base64
from typing import Any, Final

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import MediaPart, TextPart
from support.answers.run_blocks import Block, refusal, turns

WHERE: Final = "messages[0].content[0].source"
PDF: Final = base64.b64encode(b"%PDF-1.7").decode()


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def document(source: Block, **more: Any) -> Block:
    return {"type": "document", "source": source, **more}


def read(*blocks: Block) -> Any:
    (turn,) = turns(("user", list(blocks)))
    return turn.content


def wrong(block: Block) -> SmgError:
    return refusal(("user", [block]))


@pytest.mark.parametrize("media_type", ["text/plain", "text/markdown", "Text/CSV"])
def test_a_text_in_base64_is_framed_like_one_that_is_not(media_type: str) -> None:
    plain = document({"type": "text", "media_type": "text/plain", "data": "é"}, title="t")
    source = {"type": "base64", "media_type": media_type, "data": encoded("é")}
    assert read(document(source, title="t")) == read(plain)


@pytest.mark.parametrize(
    ("source", "address"),
    [
        (
            {"type": "base64", "media_type": "application/pdf", "data": PDF},
            f"data:application/pdf;base64,{PDF}",
        ),
        (
            {"type": "base64", "media_type": "video/mp4", "data": "AAAA"},
            "data:video/mp4;base64,AAAA",
        ),
        ({"type": "url", "url": "https://x.test/a.pdf"}, "https://x.test/a.pdf"),
    ],
)
def test_others_are_files_with_their_title_and_context(source: Block, address: str) -> None:
    question: Block = {"type": "text", "text": "What?"}
    file = MediaPart("file", address, WHERE, name="T")
    assert read(document(source, title="T", context="of the sea"), question) == (
        TextPart("of the sea"),
        file,
        TextPart("What?"),
    )
    assert read(document(source, title="T")) == (file,)


@pytest.mark.parametrize(
    ("source", "where"),
    [
        ({"type": "base64", "media_type": "text/plain", "data": "AAA"}, f"{WHERE}.data"),
        ({"type": "base64", "media_type": "text/plain", "data": "gIE="}, f"{WHERE}.data"),
        ({"type": "base64", "media_type": "text/plain"}, f"{WHERE}.data"),
        ({"type": "base64", "media_type": "a/b;c", "data": "AAAA"}, f"{WHERE}.media_type"),
        ({"type": "base64", "media_type": "", "data": "AAAA"}, f"{WHERE}.media_type"),
        ({"type": "base64", "data": "AAAA"}, f"{WHERE}.media_type"),
        ({"type": "base64", "media_type": "application/pdf", "data": ""}, f"{WHERE}.data"),
        ({"type": "url", "url": ""}, f"{WHERE}.url"),
        ({"type": "url"}, f"{WHERE}.url"),
        ({"type": "file", "file_id": "f"}, f"{WHERE}.type"),
        ({"type": "other"}, f"{WHERE}.type"),
    ],
)
def test_what_is_wrong_with_a_source_is_told_with_its_path(source: Block, where: str) -> None:
    assert wrong(document(source)).where == where
