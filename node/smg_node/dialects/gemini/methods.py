"""Methods of the Gemini API, as they stand in a path behind a model's name: `models/M:generateContent`."""

from typing import Final

GENERATE: Final = "generateContent"
STREAM: Final = "streamGenerateContent"
COUNT: Final = "countTokens"
METHODS: Final = (GENERATE, STREAM, COUNT)
SSE: Final = "sse"
"""Value of the query parameter `alt` that asks for server-sent events instead of a JSON array."""


def asked_of(path: str) -> tuple[str, str]:
    """Return model and method of what stands behind `models/` in a path; the method is "" without a colon."""
    model, colon, method = path.rpartition(":")
    return (model, method) if colon else (path, "")
