"""Answer values: texts, objects, numbers and log probabilities in an answer, whatever they are. Pure.

A value that cannot be read is an error, because dropping it could drop a part of the answer.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import TokenLogprob, TopLogprob

_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode


def broken(message: str) -> SmgError:
    """Return the error for what is no answer."""
    return SmgError(ErrorKind.UPSTREAM_FAILED, message)


def object_of(data: bytes) -> dict[str, Any]:
    """Return the object of an event or a body; UPSTREAM_FAILED for anything else."""
    try:
        said = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise broken("the worker's answer is no JSON") from error
    if not isinstance(said, dict):
        raise broken("the worker's answer is no object of JSON")
    return said


def objects(value: object) -> Sequence[Mapping[str, Any]]:
    """Return a list of objects; an empty one for null."""
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise broken("the worker's answer has something else where a list of objects belongs")
    return value


def text_of(value: object) -> str:
    """Return text, also from a list of parts; "" for null."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    parts = objects(value) if isinstance(value, list) else None
    if parts is None:
        raise broken("the worker's answer has something else where text belongs")
    return "".join(text_of(part.get("text")) for part in parts)


def arguments_of(value: object) -> str:
    """Return arguments as text; some servers send them as an object."""
    return _encode(value).decode() if isinstance(value, dict) else text_of(value)


def number_of(value: object) -> int | None:
    """Return a whole number; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def object_at(value: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """Return the object at a path; an empty one if there is none."""
    for name in path:
        inside = value.get(name)
        if not isinstance(inside, dict):
            return {}
        value = inside
    return value


def string_at(value: Mapping[str, Any], *path: str) -> str:
    """Return the string at a path; "" for anything else."""
    found = object_at(value, *path[:-1]).get(path[-1])
    return found if isinstance(found, str) else ""


def logprob_rows(content: object) -> tuple[TokenLogprob, ...]:
    """Return the log probabilities of a list, without token ids, which nobody sends."""
    if not isinstance(content, list):
        return ()
    return tuple(
        TokenLogprob(
            0,
            text_of(row.get("token")),
            _raw(row),
            _logprob(row),
            tuple(
                TopLogprob(0, text_of(top.get("token")), _raw(top), _logprob(top))
                for top in objects(row.get("top_logprobs"))
            ),
        )
        for row in objects(content)
    )


def _raw(row: Mapping[str, Any]) -> bytes:
    said = row.get("bytes")
    if isinstance(said, list) and all(type(one) is int and 0 <= one < 256 for one in said):
        return bytes(said)
    return text_of(row.get("token")).encode()


def _logprob(row: Mapping[str, Any]) -> float:
    value = row.get("logprob")
    return float(value) if isinstance(value, int | float) else -9999.0
