"""Document of a file source: bytes as JSON or YAML, and the line on which a value stands. Pure.

Text that begins with a bracket or a brace is JSON, and read as YAML where it is none: both close what they open, so a part of
such a text is never taken for the whole. Any other YAML may go on after its end; `closed` tells which it is.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

JSON_BYTES_MAX: Final = 16 << 20
YAML_BYTES_MAX: Final = 2 << 20
"""PyYAML takes 3 seconds for a megabyte."""
Path: TypeAlias = Sequence[str | int]
"""Keys and places on the way to a value."""

_BLANK: Final = re.compile(r"[ \t\r\n]*")
_WHY_MAX: Final = 200
_END_OF_YAML: Final = re.compile(r"(?m)^\.\.\.\s*\Z")


class DocumentError(Exception):
    """A text that cannot be read; `line` is where, from 1 on, or 0 where that is not known."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.line = line

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}" if self.line else self.message


@dataclass(frozen=True, slots=True)
class Document:
    """Plain values of a text. `line_of` returns the line of the value at a path, 0 if there is none."""

    value: Any
    line_of: Callable[[Path], int]
    closed: bool


def read_document(raw: bytes) -> Document:
    """Return what the bytes say; DocumentError if they are no text, too large, empty, or neither JSON nor YAML."""
    if len(raw) > JSON_BYTES_MAX:
        raise DocumentError(f"it is larger than {JSON_BYTES_MAX >> 20} MiB")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DocumentError("it is not UTF-8 text", line) from None
    stripped = text.lstrip()
    if not stripped:
        raise DocumentError("it is empty; no workers are written as []")
    if stripped[0] in "[{":
        try:
            return _json(text)
        except ValueError as error:
            refused = _json_error(error, text)
            if len(raw) > YAML_BYTES_MAX or isinstance(error, _TwiceError):
                raise refused from None
        try:
            return _yaml(text, closed=True)
        except DocumentError:
            raise refused from None  # more likely a mistake in JSON than YAML that looks like it
    if len(raw) > YAML_BYTES_MAX:
        raise DocumentError(f"it is larger than {YAML_BYTES_MAX >> 20} MiB, which YAML may be")
    return _yaml(text, closed=bool(_END_OF_YAML.search(text)))


# ── JSON ─────────────────────────────────────────────────────────────────────


class _TwiceError(ValueError):
    """A key that stands twice in one object."""


def _json(text: str) -> Document:
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except RecursionError:
        raise _TwiceError("it is nested too deeply") from None
    return Document(value, lambda path: _json_line(text, path), closed=True)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise _TwiceError(f"the key {twice[:60]!r} stands twice in one object")
    return found


def _no_number(word: str) -> float:
    raise _TwiceError(f"{word} is no number")


def _json_error(error: ValueError, text: str) -> DocumentError:
    if isinstance(error, json.JSONDecodeError):
        end = not text[error.pos :].strip() or error.msg.startswith("Unterminated string")
        why = "it ends too early" if end else f"it is not JSON: {error.msg.lower()}"
        return DocumentError(f"{why} (column {error.colno})", error.lineno)
    return DocumentError(str(error)[:_WHY_MAX])


def _json_line(text: str, path: Path) -> int:
    """Return the line of the value at `path` in good JSON."""
    decoder = json.JSONDecoder()
    at = _blank(text, 0)
    for step in path:
        found = _step(text, at, step, decoder)
        if found is None:
            break
        at = found
    return text.count("\n", 0, at) + 1


def _step(text: str, at: int, step: str | int, decoder: json.JSONDecoder) -> int | None:
    """Return where the value at a key or place of the object or list at `at` begins."""
    if text[at] != ("{" if isinstance(step, str) else "["):
        return None
    number, at = 0, _blank(text, at + 1)
    while text[at] not in "]}":
        key: str | int = number
        if isinstance(step, str):
            key, at = decoder.raw_decode(text, at)
            at = _blank(text, _blank(text, at) + 1)
        if key == step:
            return at
        _, at = decoder.raw_decode(text, at)
        at = _blank(text, at)
        if text[at] == ",":
            at = _blank(text, at + 1)
        number += 1
    return None


def _blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    assert found is not None, "it matches nothing, too"
    return found.end()


# ── YAML ─────────────────────────────────────────────────────────────────────


def _yaml(text: str, *, closed: bool) -> Document:
    # Imported here: a node whose file is JSON does not pay for it.
    import yaml

    from smg_node.config.schema.plain_yaml import PlainLoader

    try:
        loader = PlainLoader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                raise DocumentError("it holds nothing; no workers are written as []")
            _check_nodes(node)
            value = loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        why = " ".join((error.problem or error.context or "").split())[:_WHY_MAX]
        line = mark.line + 1 if mark is not None else 0
        raise DocumentError(f"it is not YAML: {why}", line) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise DocumentError(f"it is not YAML: {' '.join(str(error).split())[:_WHY_MAX]}") from None
    except RecursionError:
        raise DocumentError("it is nested too deeply") from None
    return Document(value, lambda path: _yaml_line(node, path), closed=closed)


def _check_nodes(root: Any) -> None:
    """DocumentError for a value that stands at two places through an alias, and for a key that stands twice."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        line = node.start_mark.line + 1
        if id(node) in seen:
            raise DocumentError("anchors are not understood; write the values out", line)
        seen.add(id(node))
        if node.id == "sequence":
            waiting += node.value
        elif node.id == "mapping":
            keys: set[str] = set()
            for key, value in node.value:
                name = key.value if key.id == "scalar" else ""
                if name in keys:
                    raise DocumentError(
                        f"the key {name[:60]!r} stands twice", key.start_mark.line + 1
                    )
                keys.add(name)
                waiting += (key, value)


def _yaml_line(node: Any, path: Path) -> int:
    for step in path:
        if isinstance(step, int):
            found = node.value[step] if node.id == "sequence" and step < len(node.value) else None
        else:
            rows = node.value if node.id == "mapping" else ()
            found = next((value for key, value in rows if key.value == step), None)
        if found is None:
            break
        node = found
    return int(node.start_mark.line) + 1
