"""Logs: one JSON object or one readable line per record, with the ids of its request.

Everything goes through the standard library's loggers. What is passed as `extra={"fields": {…}}`
becomes keys of the JSON line. Whatever looks like a credential is blanked in the last step, so that a
forgotten one in some library's message does not end up on a disk.
"""

import logging
import re
import traceback
from datetime import UTC, datetime
from typing import Any, BinaryIO, Final, Literal

import msgspec

from smg_node.telemetry.logs.line_sink import LineSink
from smg_node.telemetry.traces.request_scope import current

LogFormat = Literal["auto", "json", "console"]

MESSAGE_CHARACTERS_MAX: Final = 16_384
_SECRET: Final = re.compile(
    r"(?i)(\b(?:bearer|basic)\s+|\b(?:api[_-]?key|x-goog-api-key|authorization|password|secret|token)"
    r"[\"']?\s*[=:]\s*[\"']?|://[^\s/:@]+:(?=[^\s/@]*@))(?!bearer\b|basic\b)[^\s\"',;@&]{4,}"
    r"|()\b(?:sk|smg)-[A-Za-z0-9_-]{16,}"
)


def without_secrets(text: str) -> str:
    """Return `text` with everything that looks like a credential replaced by asterisks."""
    return _SECRET.sub(lambda match: f"{match[1] or ''}***", text)


class JsonLines(logging.Formatter):
    """One JSON object a line, RFC 3339 time in UTC."""

    def __init__(self) -> None:
        super().__init__()
        self._encode = msgspec.json.Encoder().encode

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without its line feed."""
        line: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
        }
        scope = current()
        if scope.request_id:
            line["request_id"] = scope.request_id
        if scope.trace.trace_id:
            line["trace_id"] = scope.trace.trace_id
        for name, value in getattr(record, "fields", {}).items():
            plain = value if isinstance(value, int | float | bool | None) else _writable(str(value))
            line.setdefault(name, plain)
        if record.exc_info:
            line["error"] = _trace(record)
        return self._encode(line).decode()


class ConsoleLines(logging.Formatter):
    """One line for human eyes; a traceback follows on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without its line feed."""
        fields = getattr(record, "fields", {})
        scope = current()
        if scope.request_id:
            fields = {**fields, "request_id": scope.request_id}
        tail = "".join(f" {name}={value}" for name, value in fields.items())
        level = record.levelname.lower()
        head = f"{_time(record)[11:23]} {level:<8}{record.name.removeprefix('smg_node.')}: "
        text = f"{head}{_message(record)}{without_secrets(tail)}"
        return f"{text}\n{_trace(record)}" if record.exc_info else text


class Logs:
    """The process's logging, as long as this object is open."""

    def __init__(
        self, sink: LineSink, *, line_format: LogFormat, level: str, terminal: bool
    ) -> None:
        """Send all loggers to `sink`; `auto` is console on a terminal and JSON elsewhere."""
        self._sink = sink
        self._door = _ToSink(sink)
        readable = line_format == "console" or (line_format == "auto" and terminal)
        self._door.setFormatter(ConsoleLines() if readable else JsonLines())
        root = logging.getLogger()
        self._level_before = root.level
        root.setLevel(level.upper())
        root.addHandler(self._door)

    def set_level(self, level: str) -> None:
        """Log nothing less important than `level` from now on."""
        logging.getLogger().setLevel(level.upper())

    def close(self) -> None:
        """Put the loggers back as they were; the sink stays open."""
        root = logging.getLogger()
        root.removeHandler(self._door)
        root.setLevel(self._level_before)


def open_logs(stream: BinaryIO, *, line_format: LogFormat, level: str) -> tuple[Logs, LineSink]:
    """Return the process's logging onto `stream`, and the sink, for the access log to share."""
    sink = LineSink(stream)
    return Logs(sink, line_format=line_format, level=level, terminal=stream.isatty()), sink


class _ToSink(logging.Handler):
    def __init__(self, sink: LineSink) -> None:
        super().__init__()
        self._sink = sink

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._sink.put((self.format(record) + "\n").encode("utf-8", "backslashreplace"))
        except Exception:
            # A boundary: a message that cannot be formatted must not break the code that logs it.
            self.handleError(record)


def _message(record: logging.LogRecord) -> str:
    return _writable(record.getMessage()[:MESSAGE_CHARACTERS_MAX])


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _trace(record: logging.LogRecord) -> str:
    assert record.exc_info
    text = "".join(traceback.format_exception(*record.exc_info))
    return _writable(text[-MESSAGE_CHARACTERS_MAX:])


def _writable(text: str) -> str:
    """Return `text` as it may be written: without credentials, and without lone surrogates."""
    return without_secrets(text).encode("utf-8", "backslashreplace").decode()
