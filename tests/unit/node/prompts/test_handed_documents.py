"""Documents of a conversation are handed to templates that take documents, and stand in their turns for others."""

from typing import Any

import pytest

from smg_node.core.generation.request import ChatPrompt
from smg_node.dialects.messages.request.reader import MessagesReader
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.thought_seals import PlainVault, ThoughtSeals
from support.models.prompt_corpus import NOW, renderer_of_texts

READER = MessagesReader(ReaderOptions(), ThoughtSeals(PlainVault()))
SHOWN = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
BY_ITEMS = (
    "{% for d in documents or [] %}{% for key, value in d.items() %}{{ key }}={{ value }};{% endfor %}{% endfor %}"
    + SHOWN
)
BY_NUMBER = (
    "{% if documents %}{% for d in documents %}[{{ d['doc_id'] }}]{{ d['title'] }}: {{ d['text'] }}\n"
    "{% endfor %}{% endif %}" + SHOWN
)
# It asks for documents and prints none.
ASKS = "{% if documents %}Cite.{% endif %}" + SHOWN
ONE = '<document index="1" title="T" context="C">\nD\n</document>'


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def document(data: Any, **more: Any) -> dict[str, Any]:
    if type(data) is list:
        source = {"type": "content", "content": data}
    else:
        source = {"type": "text", "media_type": "text/plain", "data": data}
    return {"type": "document", "source": source, **more}


def asked(*messages: tuple[str, Any]) -> ChatPrompt:
    rows = [{"role": role, "content": content} for role, content in messages]
    (prompt,) = READER.read({"model": "m", "max_tokens": 9, "messages": rows}).request.prompts
    assert isinstance(prompt, ChatPrompt)
    return prompt


def rendered(template: str, prompt: ChatPrompt) -> str:
    return renderer_of_texts({"default": template}).render(prompt, now=NOW)


FULL = asked(("user", [document("D", title="T", context="C"), text("Why?")]))
LATER = asked(
    ("user", "Hello."),
    ("assistant", "Hi."),
    ("user", [text("Look:"), document([text("a"), text("b")]), document("c", title="U")]),
)
BARE = asked(("user", [document("D")]), ("assistant", "Yes?"), ("user", [document("E"), text("?")]))


@pytest.mark.parametrize(
    ("template", "prompt", "said"),
    [
        (BY_ITEMS, FULL, "doc_id=1;title=T;text=C\n\nD;<user>Why?"),
        (BY_NUMBER, FULL, "[1]T: C\n\nD\n<user>Why?"),
        (ASKS, FULL, f"<user>{ONE}\nWhy?"),
        (SHOWN, FULL, f"<user>{ONE}\nWhy?"),
        (BY_NUMBER, LATER, "[1]: a\nb\n[2]U: c\n<user>Hello.<assistant>Hi.<user>Look:"),
        (
            SHOWN,
            LATER,
            '<user>Hello.<assistant>Hi.<user>Look:\n<document index="1">\na\nb\n</document>\n'
            '<document index="2" title="U">\nc\n</document>',
        ),
        (
            BY_NUMBER,
            BARE,
            '<user><document index="1">\nD\n</document><assistant>Yes?'
            '<user><document index="2">\nE\n</document>\n?',
        ),
    ],
)
def test_documents_are_told_as_the_template_takes_them(
    template: str, prompt: ChatPrompt, said: str
) -> None:
    assert rendered(template, prompt) == said


def test_a_template_for_documents_is_chosen_for_them() -> None:
    ours = renderer_of_texts({"default": SHOWN, "rag": BY_NUMBER})
    assert ours.render(FULL, now=NOW) == "[1]T: C\n\nD\n<user>Why?"
    assert ours.render(asked(("user", "Why?")), now=NOW) == "<user>Why?"


def test_documents_that_a_tool_returns_stay_in_its_result() -> None:
    prompt = asked(
        ("user", "Go."),
        ("assistant", [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]),
        ("user", [{"type": "tool_result", "tool_use_id": "a", "content": [document("D")]}]),
    )
    assert prompt.handed is None
    assert prompt.turns[2].content == '<document index="1">\nD\n</document>'


def test_what_renders_documents_apart_does_not_come_from_a_known_form() -> None:
    ours = renderer_of_texts({"default": BY_NUMBER})
    plain = asked(("user", "Why?"))
    for _ in range(4):
        assert ours.render(plain, now=NOW) == "<user>Why?"
    assert ours.known(FULL, now_ms=0) is None
    assert ours.render(FULL, now=NOW) == "[1]T: C\n\nD\n<user>Why?"
