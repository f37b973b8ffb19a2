"""Streamed usage: asks a worker for the usage of a stream, and shows it to a client only if it asked. Pure."""

from collections.abc import Mapping
from typing import Any

from smg_node.pipeline.relay.filters.answer_filter import event_of


class StreamedUsage:
    """Usage of one stream, whose client sent `fields`."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        said = fields.get("stream_options")
        self._options: dict[str, Any] = dict(said) if isinstance(said, dict) else {}
        self._streamed = fields.get("stream") is True
        self.last: dict[str, Any] | None = None
        """The last one that the worker told."""

    def more(self, *, continuous: bool) -> dict[str, Any]:
        """Return the fields by which a worker is asked for it; with every chunk if `continuous`."""
        if not self._streamed:
            return {}
        each = {"continuous_usage_stats": True} if continuous else {}
        return {"stream_options": {**self._options, "include_usage": True, **each}}

    def take(self, chunk: dict[str, Any]) -> bool:
        """Note a chunk's usage, and take it out if the client did not ask for it; whether it was changed."""
        if "usage" not in chunk:
            return False
        usage = chunk["usage"]
        if isinstance(usage, dict):
            self.last = usage
        wanted = "continuous_usage_stats" if chunk["choices"] else "include_usage"
        if usage is None or self._options.get(wanted) is True:
            return False
        del chunk["usage"]
        return True

    def event(self, chunk: dict[str, Any]) -> bytes:
        """Return the event that ends a stream cut off here, after `chunk`; nothing if its client wants none."""
        if self.last is None or self._options.get("include_usage") is not True:
            return b""
        return event_of({**chunk, "choices": [], "usage": self.last})
