"""JSON values: packs what JSON can say as msgpack bytes, and reads it back."""

import math
from typing import Final, TypeAlias

import msgspec

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None

NESTING_MAX: Final = 32
_INTEGER_MIN: Final = -(1 << 63)
_INTEGER_MAX: Final = (1 << 64) - 1
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder()


def write_json(value: object) -> bytes:
    """Return the bytes of a value; ValueError for what JSON cannot say, or not in 64 bits."""
    _check(value, NESTING_MAX)
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError as error:
        raise ValueError("a lone surrogate is no text") from error


def read_json(data: bytes) -> Json:
    """Return the value of these bytes; ValueError if they are none."""
    try:
        value: Json = _decoder.decode(data)
    except (msgspec.DecodeError, RecursionError, ValueError, TypeError) as error:
        raise ValueError(f"no msgpack: {error}") from error
    _check(value, NESTING_MAX)
    return value


def _check(value: object, depth: int) -> None:
    """Raise ValueError unless JSON can say this."""
    if depth == 0:
        raise ValueError(f"nested deeper than {NESTING_MAX}")
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            raise ValueError("a name is no text")
        for inner in value.values():
            _check(inner, depth - 1)
    elif isinstance(value, list):
        for inner in value:
            _check(inner, depth - 1)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("a number is not finite")
    elif isinstance(value, int):
        if not _INTEGER_MIN <= value <= _INTEGER_MAX:
            raise ValueError("a number has more than 64 bits")
    elif not (value is None or isinstance(value, str)):
        raise ValueError(f"{type(value).__name__} is nothing that JSON can say")
