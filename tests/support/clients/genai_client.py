"""Google's official client for tests: made for a node, and what a user of a stream hears and must never believe."""

from typing import Any, Final

import httpx2
from google import genai
from google.genai import types as genai_types
from google.genai._interactions_errors import APIConnectionError
from google.genai.errors import ContinuationInterruptedError

BREAKS: Final = (httpx2.TransportError, ContinuationInterruptedError, APIConnectionError)
"""What the client raises for a stream that broke, and that it could not go on with."""


def client_of(url: str, version: str | None = None, *, key: str = "none", **options: Any) -> Any:
    """Return the client; of its types, which are unions of all there is, nothing is checked here."""
    http = genai_types.HttpOptions(base_url=url, api_version=version, **options)
    return genai.Client(api_key=key, http_options=http)


class Hearing:
    """What one user hears of one stream."""

    def __init__(self) -> None:
        self.text = ""
        self.status = ""
        """What its last event says; "" where there was none."""
        self.errors: list[str] = []
        """Codes of its error events."""
        self.broke: Exception | None = None
        """What was raised in the end, if anything was."""
        self.id = ""

    def take(self, event: Any) -> None:
        """Take one event of the client."""
        match event.event_type:
            case "step.delta":
                self.text += event.delta.text
            case "error":
                self.errors.append(event.error.code)
            case "interaction.created":
                self.id = event.interaction.id
            case "interaction.completed":
                self.status = event.interaction.status
            case _:
                pass


def heard(client: Any, hearing: Hearing | None = None, **ask: Any) -> Hearing:
    """Return what is heard of a stream, to its end; of one that broke, what was raised as well."""
    told = hearing or Hearing()
    try:
        for event in client.interactions.create(stream=True, **ask):
            told.take(event)
    except BREAKS as error:
        told.broke = error
    return told
