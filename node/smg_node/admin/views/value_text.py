"""Value text: parses values an operator typed, and formats values, changes and times."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from smg_node.admin.client import AdminError

_FILE_MAX_CHARACTERS: Final = 4_194_304
_VALUE_SHOWN_MAX: Final = 120


def read_value(text: str) -> Any:
    """Return what `text` is as JSON, and the text itself where it is none."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def read_value_list(words: list[str]) -> list[str]:
    """Return a list of texts: written as JSON, separated by commas, or one by one."""
    if len(words) == 1:
        read = read_value(words[0])
        if isinstance(read, list):
            return read
        return [word for word in words[0].split(",") if word]
    return words


def read_file(file: str) -> str:
    """Return the text of a file, `-` is the standard input; AdminError if it cannot be read."""
    try:
        if file == "-":
            return sys.stdin.read(_FILE_MAX_CHARACTERS)
        with Path(file).open(encoding="utf-8") as source:
            return source.read(_FILE_MAX_CHARACTERS)
    except (OSError, UnicodeDecodeError) as error:
        reason = (getattr(error, "strerror", None) or "it is no text").lower()
        raise AdminError(f"cannot read {file}: {reason}") from None


def read_key(file: str) -> str:
    """Return the key in the first line of a file that has more than a comment; AdminError without
    one.
    """
    lines = (line.partition("#")[0].strip() for line in read_file(file).splitlines())
    key = next((line for line in lines if line), None)
    if key is None:
        raise AdminError(f"{file} holds no key")
    return key


def format_value(value: Any) -> str:
    """Return a setting's value as it could be typed, cut where it is long."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _VALUE_SHOWN_MAX else f"{text[:_VALUE_SHOWN_MAX]}…"


def format_time(time_ms: int) -> str:
    """Return a moment in this machine's time zone, to the second."""
    from datetime import datetime

    return datetime.fromtimestamp(time_ms / 1000).astimezone().isoformat(" ", "seconds")


def format_change(before: Any, after: Any) -> str:
    """Return the change: of two objects the fields that differ, else both sides."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        names = sorted({*before, *after})
        changed = [name for name in names if before.get(name) != after.get(name)]
        said = [
            f"{name}: {format_value(before.get(name))} -> {format_value(after.get(name))}"
            for name in changed
        ]
        return ", ".join(said) or "nothing"
    if before is None and after is None:
        return ""
    return f"{_side(before)} -> {_side(after)}"


def _side(said: Any) -> str:
    if isinstance(said, Mapping):
        return ", ".join(f"{name}={format_value(value)}" for name, value in said.items()) or "-"
    return "-" if said is None else format_value(said)


def _refuse(word: str) -> Any:
    raise ValueError(word)
