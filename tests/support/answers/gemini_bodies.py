"""Requests to the dialect of Google's API, with what stands around their bodies."""

from dataclasses import dataclass, field
from typing import Any, Final

from smg_node.core.generation.request import ChatPrompt, GenerateRequest, Turn
from smg_node.dialects.dialect import ParsedBody, Presenter
from smg_node.dialects.gemini.dialect import GeminiDialect
from smg_node.dialects.gemini.spelling import snake_case
from smg_node.dialects.gemini.view import GeminiView
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.thought_seals import PlainVault, ThoughtSeals

SEALS: Final = ThoughtSeals(PlainVault())
DIALECT: Final = GeminiDialect(ReaderOptions(), SEALS)
HI: Final[dict[str, Any]] = {"role": "user", "parts": [{"text": "hi"}]}


@dataclass(frozen=True)
class Around:
    """What a dialect knows of a request besides its body."""

    values: dict[str, str]
    query: dict[str, str] = field(default_factory=dict)
    tenant: str = "acme"
    request_id: str = "req_1"
    headers: dict[str, str] = field(default_factory=dict)


def around(method: str = "generateContent", model: str = "m", alt: str = "") -> Around:
    """Return what stands around a body that is sent to a method of a model."""
    return Around({"id": f"{model}:{method}"}, {"alt": alt} if alt else {})


def parsed(
    body: dict[str, Any], method: str = "generateContent", alt: str = ""
) -> ParsedBody[GeminiView]:
    """Return what a body asks for."""
    return DIALECT.read(body, around(method, alt=alt))


def request_of(method: str = "generateContent", **body: Any) -> GenerateRequest:
    """Return the request of a body, which says hi unless it has contents."""
    return parsed({"contents": [HI], **body}, method).request


def prompt_of(**body: Any) -> ChatPrompt:
    """Return its prompt."""
    (prompt,) = request_of(**body).prompts
    assert isinstance(prompt, ChatPrompt)
    return prompt


def turns_of(*contents: dict[str, Any]) -> tuple[Turn, ...]:
    """Return the turns of these contents."""
    return prompt_of(contents=list(contents)).turns


def presenter_of(reading: ParsedBody[GeminiView]) -> Presenter:
    """Return the presenter of an answer to it."""
    return DIALECT.presenter(reading, around(model=reading.view.model))


def snaked(value: Any) -> Any:
    """Return a body with all its keys in snake_case."""
    if isinstance(value, dict):
        return {snake_case(key): snaked(inner) for key, inner in value.items()}
    return [snaked(inner) for inner in value] if isinstance(value, list) else value


FUNCTIONS: Final[list[dict[str, Any]]] = [
    {
        "functionDeclarations": [
            {"name": "look.up", "description": "Looks.", "parameters": {"type": "OBJECT"}},
            {"name": "g", "parametersJsonSchema": {"type": "object", "properties": {"x": {}}}},
            {"name": "bare"},
        ]
    }
]
