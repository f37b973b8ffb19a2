"""Conversations for chat templates, and the corpus of templates they are put into.

The templates imitate in our own words how the published families are built: who alternates, who prints
dates, who concatenates call arguments, who wants parts.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from types import MappingProxyType
from typing import Any, Final

from smg_node.core.generation.request import ChatPrompt, TextPart, Tool, ToolCall, Turn
from smg_node.prompts.analysis.template_selection import TemplateTexts
from smg_node.prompts.jinja.chat_template import ChatTemplate, TemplateLimits
from smg_node.prompts.messages import Warn
from smg_node.prompts.renderer import Renderer, RenderOptions

FOLDER: Final = Path(__file__).parents[2] / "unit" / "node" / "prompts"
NOW: Final = datetime(2026, 11, 3, 9, 30, tzinfo=UTC)
TOKENS: Final[Mapping[str, str]] = MappingProxyType(
    {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
)
NAMES: Final = tuple(sorted(path.stem for path in (FOLDER / "templates").glob("*.jinja")))

TIDE: Final = Tool(
    "get_tide",
    "High and low water at a harbour.",
    {
        "type": "object",
        "properties": {
            "harbour": {"type": "string", "description": 'Its name, e.g. "Le Havre" <b>'},
            "day": {"type": "integer"},
            "unit": {"enum": ["m", "ft"]},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["harbour"],
    },
)
_CLOCK: Final = Tool("get_time")
_CALLS: Final = (
    ToolCall("abcde1234", "get_tide", '{"harbour": "Zürich", "day": 3, "tags": ["x"]}'),
)
_QUESTION: Final = Turn("user", "When is high tide?")

CHATS: Final[Mapping[str, ChatPrompt]] = MappingProxyType(
    {
        "one question": ChatPrompt((Turn("user", "Hello there"),)),
        "a system message": ChatPrompt((Turn("system", "Be brief."), Turn("user", "  spaced  \n"))),
        "several turns": ChatPrompt(
            (
                Turn("user", "One"),
                Turn("assistant", "1"),
                Turn("user", "Two"),
                Turn("assistant", " 2 "),
                Turn("user", "Three"),
            )
        ),
        "odd characters": ChatPrompt(
            (Turn("user", "<b> & \"quotes\" 'x' é 漢字 🎉 {{ 7 * 7 }} {% if %} \\n \t end"),)
        ),
        "parts": ChatPrompt((Turn("user", (TextPart("first"), TextPart("second"))),)),
        "tools": ChatPrompt((Turn("system", "Help."), _QUESTION), tools=(TIDE, _CLOCK)),
        "a call": ChatPrompt(
            (
                _QUESTION,
                Turn("assistant", None, calls=_CALLS),
                Turn("tool", "at <noon>", answers_call="abcde1234"),
            ),
            tools=(TIDE,),
        ),
        "two calls answered in the wrong order": ChatPrompt(
            (
                _QUESTION,
                Turn(
                    "assistant",
                    "Let me see.",
                    calls=(
                        ToolCall("aaaaa0001", "get_tide", '{"harbour":"Calais"}'),
                        ToolCall("bbbbb0002", "get_time", ""),
                    ),
                ),
                Turn("tool", "second", answers_call="bbbbb0002"),
                Turn("tool", "first", answers_call="aaaaa0001"),
                Turn("assistant", "At noon."),
                Turn("user", "Thanks"),
            ),
            tools=(TIDE, _CLOCK),
        ),
        "thoughts": ChatPrompt(
            (
                Turn("user", "Why?"),
                Turn("assistant", "Because.", reasoning="Let me think.\nIt is so."),
                Turn("user", "Tide?"),
                Turn("assistant", None, reasoning="I need the tool.", calls=_CALLS),
                Turn("tool", "noon", answers_call="abcde1234"),
            ),
            tools=(TIDE,),
        ),
        "no thinking": ChatPrompt((Turn("user", "Hi"),), kwargs={"enable_thinking": False}),
        "a date of its own": ChatPrompt(
            (Turn("user", "Hi"),), kwargs={"date_string": "1 Jan 2000"}
        ),
        "two system messages": ChatPrompt(
            (Turn("system", "One."), Turn("user", "Hi"), Turn("developer", "Two."))
        ),
        "neighbours": ChatPrompt((Turn("user", "One"), Turn("user", "Two"))),
        "an answer to continue": ChatPrompt(
            (Turn("user", "Count"), Turn("assistant", "1, 2, ")),
            add_generation_prompt=False,
            continue_final_message=True,
        ),
        "a finished answer": ChatPrompt(
            (Turn("user", "Count"), Turn("assistant", "1, 2")), add_generation_prompt=False
        ),
        "documents": ChatPrompt(
            (Turn("user", "Where?"),), documents=({"title": "A", "text": "Here."}, {"text": "B"})
        ),
        "a named user": ChatPrompt((Turn("user", "Hi", name="ann"),)),
    }
)


def source(name: str) -> str:
    """Return the text of a template of the corpus."""
    return (FOLDER / "templates" / f"{name}.jinja").read_text(encoding="utf-8")


def compiled(text: str, **limits: Any) -> ChatTemplate:
    """Return `text` as a template."""
    return ChatTemplate(text, limits=TemplateLimits(**limits), monotonic_s=monotonic)


def noting(said: list[str]) -> Warn:
    """Return who is warned and puts it into `said`."""

    def warn(what: str, _parameter: str = "", /) -> None:
        said.append(what)

    return warn


def renderer(text: str, **options: Any) -> Renderer:
    """Return a renderer whose only template is `text`."""
    return renderer_of_texts({"default": text}, **options)


def renderer_of_texts(
    texts: Mapping[str, str], *, call_ids: str = "", thinking_key: str = "", **options: Any
) -> Renderer:
    """Return a renderer with these named templates."""
    return Renderer(
        TemplateTexts(dict(texts), "a test"),
        TOKENS,
        options=RenderOptions(**options),
        monotonic_s=monotonic,
        call_ids=call_ids,
        thinking_key=thinking_key,
    )
