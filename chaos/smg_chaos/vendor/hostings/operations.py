"""Operations of vendors' APIs, and the patterns of paths that lead to them."""

import re
from enum import Enum, auto
from typing import Final, Literal, NamedTuple

Style = Literal["openai", "anthropic", "google", "aws"]


class Operation(Enum):
    """What is asked for, in no vendor's spelling."""

    CHAT = auto()
    COMPLETIONS = auto()
    RESPONSES = auto()
    STORED_RESPONSE = auto()
    EMBEDDINGS = auto()
    MODELS = auto()
    MODEL = auto()
    MESSAGES = auto()
    COUNT_TOKENS = auto()
    GENERATE = auto()
    STREAM_GENERATE = auto()
    COUNT_CONTENTS = auto()
    CONVERSE = auto()
    CONVERSE_STREAM = auto()
    COUNT_CONVERSE = auto()
    INVOKE = auto()
    INVOKE_STREAM = auto()
    RAW_PREDICT = auto()
    STREAM_RAW_PREDICT = auto()
    COUNT_RAW = auto()


class Path(NamedTuple):
    """A method, a pattern that the raw path must match whole, what it asks for, and in whose style it answers."""

    method: str
    pattern: re.Pattern[str]
    operation: Operation
    style: Style


_PLACES: Final = {
    "M": r"(?P<model>[^/:]+(?:(?::|%3[Aa])[^/:]+)*)",
    "G": r"(?P<model>[^/:]+)",
    "D": r"(?P<deployment>[^/]+)",
    "V": r"(?P<version>v1(?:beta|alpha|beta1)?)",
    "P": r"(?P<project>[^/]+)",
    "L": r"(?P<location>[^/]+)",
    "I": r"(?P<id>[^/]+)",
    "ANY": r"(?:/.*)?",
}


def path(method: str, text: str, operation: Operation, style: Style) -> Path:
    """Return a path; `{M}` in its text stands for a model's name, and so on as `_PLACES` has it."""
    parts = re.split(r"\{(\w+)\}", text)
    pattern = "".join(_PLACES[part] if at % 2 else re.escape(part) for at, part in enumerate(parts))
    return Path(method, re.compile(pattern), operation, style)


def openai_paths(base: str) -> tuple[Path, ...]:
    """Return the paths of OpenAI's APIs below `base`."""
    return (
        path("POST", f"{base}/chat/completions", Operation.CHAT, "openai"),
        path("POST", f"{base}/responses", Operation.RESPONSES, "openai"),
        path("GET", f"{base}/responses/{{I}}", Operation.STORED_RESPONSE, "openai"),
        path("DELETE", f"{base}/responses/{{I}}", Operation.STORED_RESPONSE, "openai"),
        path("POST", f"{base}/completions", Operation.COMPLETIONS, "openai"),
        path("POST", f"{base}/embeddings", Operation.EMBEDDINGS, "openai"),
        path("GET", f"{base}/models", Operation.MODELS, "openai"),
        path("GET", f"{base}/models/{{M}}", Operation.MODEL, "openai"),
    )


def messages_paths(base: str) -> tuple[Path, ...]:
    """Return the paths of the Messages API below `base`."""
    return (
        path("POST", f"{base}/v1/messages", Operation.MESSAGES, "anthropic"),
        path("POST", f"{base}/v1/messages/count_tokens", Operation.COUNT_TOKENS, "anthropic"),
        path("GET", f"{base}/v1/models", Operation.MODELS, "anthropic"),
        path("GET", f"{base}/v1/models/{{M}}", Operation.MODEL, "anthropic"),
    )


def google_paths(base: str) -> tuple[Path, ...]:
    """Return the paths of generateContent and what is beside it, below `base`."""
    return (
        path("POST", f"{base}/models/{{G}}:generateContent", Operation.GENERATE, "google"),
        path(
            "POST",
            f"{base}/models/{{G}}:streamGenerateContent",
            Operation.STREAM_GENERATE,
            "google",
        ),
        path("POST", f"{base}/models/{{G}}:countTokens", Operation.COUNT_CONTENTS, "google"),
        path("GET", f"{base}/models", Operation.MODELS, "google"),
        path("GET", f"{base}/models/{{G}}", Operation.MODEL, "google"),
    )
