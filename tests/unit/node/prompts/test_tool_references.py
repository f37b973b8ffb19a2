"""Templates that show deferred tools where a result refers to them get references; all others get definitions."""

from typing import Any

import pytest

from smg_node.core.generation.request import ChatPrompt
from smg_node.dialects.messages.request.reader import MessagesReader
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.thought_seals import PlainVault, ThoughtSeals
from support.models.prompt_corpus import NOW, renderer_of_texts

READER = MessagesReader(ReaderOptions(), ThoughtSeals(PlainVault()))
SCHEMA = {"type": "object"}
LATER = {"name": "Later", "description": "Later.", "input_schema": SCHEMA, "defer_loading": True}
TOLD = (
    "<functions>\n"
    '<function>{"description":"Later.","name":"Later","parameters":{"type":"object"}}</function>\n'
    "</functions>"
)
SAID = "{{ m.content if m.content is string else m.content | map(attribute='text') | join }}"
CALLS = "{% for c in m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}"
LISTED = "{% for t in tools or [] %}[{{ t.function.name }}]{% endfor %}"
SIFTED = (
    "{% for t in tools or [] if not t.function.defer_loading %}[{{ t.function.name }}]{% endfor %}"
)
EACH = "{% for m in messages %}<{{ m.role }}>"
KNOWS = (
    f"{SIFTED}{EACH}"
    "{% if m.role == 'tool' and m.content is not string and m.content[0].type == 'tool_reference' %}"
    "{% for r in m.content %}{% for t in tools if t.function.name == r.name %}"
    "({{ t.function.name }}: {{ t.function.description }}){% endfor %}{% endfor %}"
    f"{{% else %}}{SAID}{{% endif %}}{CALLS}{{% endfor %}}"
)
# It leaves deferred tools out, and has no place where it would show them.
SIFTS = f"{SIFTED}{EACH}{SAID}{CALLS}{{% endfor %}}"
LISTS = f"{LISTED}{EACH}{SAID}{CALLS}{{% endfor %}}"


def text_of(template: str, result: Any, **more: Any) -> str:
    body = {
        "model": "m",
        "max_tokens": 9,
        "tools": [{"name": "Find", "input_schema": SCHEMA}, LATER],
        "messages": [
            {"role": "user", "content": "Go."},
            {"role": "assistant", "content": [call("a")]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", **result}]},
        ],
        **more,
    }
    (prompt,) = READER.read(body).request.prompts
    assert isinstance(prompt, ChatPrompt)
    return renderer_of_texts({"default": template}).render(prompt, now=NOW)


def call(name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "Find", "input": {}}


REFERENCE = {"type": "tool_reference", "tool_name": "Later"}
ONLY = {"content": [REFERENCE]}
MIXED = {"content": [{"type": "text", "text": "Found:"}, REFERENCE]}
FAILED = {"content": [REFERENCE], "is_error": True}
HEAD = "[Find]<user>Go.<assistant>Find{}<tool>"


@pytest.mark.parametrize(
    ("template", "result", "text"),
    [
        (KNOWS, ONLY, f"{HEAD}(Later: Later.)"),
        (KNOWS, {"content": [REFERENCE, REFERENCE]}, f"{HEAD}(Later: Later.)(Later: Later.)"),
        (KNOWS, MIXED, f"{HEAD}Found:\n{TOLD}"),
        (KNOWS, FAILED, f"{HEAD}{TOLD}"),
        (KNOWS, {"content": "none"}, f"{HEAD}none"),
        (SIFTS, ONLY, f"{HEAD}{TOLD}"),
        (LISTS, ONLY, f"{HEAD}{TOLD}"),
        (LISTS, MIXED, f"{HEAD}Found:\n{TOLD}"),
    ],
)
def test_a_reference_is_shown_as_its_template_can(
    template: str, result: dict[str, Any], text: str
) -> None:
    assert text_of(template, result) == text


def test_a_result_that_is_cleared_refers_to_nothing() -> None:
    edit = {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": 1},
        "keep": {"type": "tool_uses", "value": 0},
    }
    text = text_of(KNOWS, ONLY, context_management={"edits": [edit]})
    assert text == f"{HEAD}[cleared: this result is no longer shown]"
