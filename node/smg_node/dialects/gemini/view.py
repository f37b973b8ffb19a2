"""View of a generateContent body: the options that only its presenter needs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GeminiView:
    """Presentation options of an answer.

    `model` is the name as the client spelled it. `thoughts` asks for the text of thoughts. `array` asks
    for a stream in the form of one JSON array instead of server-sent events.
    """

    model: str
    thoughts: bool = False
    array: bool = False
