"""Worker errors: what a server with an OpenAI-like API says of a failure, in whichever form it says it. Pure.

    {"error": {"message": …, "code": …, "param": …}}    the API's own form
    {"object": "error", "message": …, "code": 400}      the same without its frame
    {"error": "text"}, {"message": …}, {"detail": …}    web frameworks and proxies
    {"detail": [{"loc": […], "msg": …}]}                a framework's list of what is wrong where
    text, an HTML page                                  proxies

Only the words, the parameter and the code are kept, each cut to what an answer can carry.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

WORDS_MAX_BYTES: Final = 2_048
"""So much of what a worker says about a failure is kept."""
_MISTAKES_MAX: Final = 10
"""So many rows of a list of mistakes are told."""
_HTML: Final = re.compile(rb"\s*(?:<!doctype html|<html|<head|<body)", re.IGNORECASE)
_TITLE: Final = re.compile(r"<title[^>]*>([^<]{1,200})</title>", re.IGNORECASE)
_ACCOUNTS: Final = re.compile(r"\b(?:org-|proj_)[A-Za-z0-9]{6,64}")
"""Accounts at a provider, which are its operator's business and no client's."""
_STATUS: Final = re.compile(r"[45][0-9][0-9]", re.ASCII)
_STATUSES: Final = ("code", "status_code", "status")
"""Where a status stands: Groq has the second, Azure the third, beside a code in words."""
_CODE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}", re.ASCII)
_PARAM: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.\[\]-]{0,127}", re.ASCII)
_PLACES: Final = ("body", "query", "path", "header")
"""How a framework says in which part of a request something is, before it says where."""
_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode


class WorkerError(Exception):
    """A worker's own error message; `status` is 0 where it names none, `param` "" where it names no
    place.
    """

    def __init__(self, status: int, message: str, code: str, param: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param


NO_WORDS: Final = WorkerError(0, "", "")


def error_of(said: object) -> WorkerError | None:
    """Return the error in a body or a chunk, in any of the forms that servers give it; None if
    there is none.
    """
    if not isinstance(said, dict):
        return None
    error = said.get("error")
    if not error and said.get("object") == "error":
        error = said
    if not error and "choices" not in said and said.get("detail"):
        error = {"message": said["detail"]}
    if isinstance(error, dict) and "status_code" not in error and "status_code" in said:
        error = {**error, "status_code": said["status_code"]}
    return _error(error) if error else None


def refusal_of(body: bytes, content_type: str) -> WorkerError:
    """Return what the body of an answer with an error status says, whatever it is; without words if
    it says nothing.
    """
    if _HTML.match(body):
        title = _TITLE.search(body.decode("utf-8", "replace"))
        return WorkerError(0, _cut(" ".join(title[1].split())) if title else "", "")
    try:
        said = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        is_text = content_type.startswith("text/") or not content_type
        words = body.decode("utf-8", "replace").strip() if is_text else ""
        return WorkerError(0, _cut(words), "")
    if isinstance(said, list) and said:
        said = said[0]
    if isinstance(said, str):
        return WorkerError(0, _cut(said.strip()), "")
    return error_of(said) or _loose(said)


def _loose(said: object) -> WorkerError:
    """Return the error in an object that need not be one, but for its status."""
    if not isinstance(said, dict):
        return NO_WORDS
    for name in ("message", "errors", "msg", "title"):
        if said.get(name):
            return _error({**said, "message": said[name]})
    return NO_WORDS


def _error(error: object) -> WorkerError:
    if not isinstance(error, dict):
        error = {"message": error}
    words, param = _words(error.get("message", error.get("detail")))
    code, told = error.get("code"), error.get("param")
    status = next(filter(None, (_status(error.get(name)) for name in _STATUSES)), 0)
    if isinstance(told, str) and _PARAM.fullmatch(told):
        param = told
    return WorkerError(
        status, words, code if isinstance(code, str) and _CODE.fullmatch(code) else "", param
    )


def _status(value: object) -> int:
    """Return a number, or what is spelled like a status; 0 for anything else."""
    if isinstance(value, str):
        return int(value) if _STATUS.fullmatch(value) else 0
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _words(message: object) -> tuple[str, str]:
    """Return a message as text, and the place it names."""
    if isinstance(message, str):
        return _cut(message), ""
    if message is None:
        return "", ""
    if isinstance(message, list) and message and all(isinstance(row, dict) for row in message):
        found = [_mistake(row) for row in message[:_MISTAKES_MAX]]
        told = "; ".join(f"{place}: {words}" if place else words for place, words in found)
        return _cut(told), found[0][0]
    return _cut(_encode(message).decode()), ""


def _mistake(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return the place and the words of one row of a list of mistakes."""
    words = row.get("msg", row.get("message"))
    place = row.get("loc")
    told = words if isinstance(words, str) else _encode(row).decode()
    return _place(place) if isinstance(place, list) else "", told


def _place(parts: Sequence[object]) -> str:
    """Return a path as this node writes it: `messages[2].content`; "" for what is none."""
    if parts and parts[0] in _PLACES:
        parts = parts[1:]
    path = ""
    for part in parts:
        if isinstance(part, int):
            path += f"[{part}]"
        else:
            path += f".{part}" if path else str(part)
    return path if _PARAM.fullmatch(path) else ""


def _cut(text: str) -> str:
    text = _ACCOUNTS.sub("[an account]", text)
    raw = text.encode("utf-8", "replace")
    if len(raw) <= WORDS_MAX_BYTES:
        return text
    return raw[: WORDS_MAX_BYTES - 3].decode("utf-8", "ignore") + "…"
