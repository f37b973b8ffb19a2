"""JSON body: decodes a request body into the JSON object it must be, or refuses it.

The decoder (msgspec) refuses broken UTF-8, lone surrogates, NaN, Infinity, numbers beyond a double,
and anything after the value; of equal keys the last wins, and integers may be of any size up to
some thousand digits. A byte order mark before the value is skipped, as RFC 8259 allows. It bounds
nesting by the interpreter's recursion limit, far above ours, and raises an error there. Our own limit is checked on what was decoded, level by level, and only if the
body has more opening brackets than there are levels to go: prose never pays, and code in a string
pays only for the search. 40 KB of prose cost 8 us, a short body 0.35.
"""

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from smg_node.core.cooperative_steps import Steps, whole
from smg_node.core.errors import SmgError, invalid
from smg_node.core.json_cursor import kind_of

NESTING_MAX: Final = 128
LARGE_BYTES: Final = 65_536
"""A larger body may take longer to decode and to read than a loop should be stopped for."""
LIGHT_BYTES: Final = 1_048_576
"""A larger one takes longer whatever is in it: as a single string a third of a millisecond."""

# `bytes.count` looks at every byte (0.25 ns); `bytes.find` leaps (0.01 ns) but costs 60 ns a hit.
_COUNTED_BYTES_MAX: Final = 2_048
_decode: Final = msgspec.json.Decoder().decode

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
"""Some editors and shells put it before text in UTF-8."""
_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
_CUT_OFF: Final = "truncated"
_SURROGATE: Final = "surrogate"
# The decoder looks for the second half of a pair in the six bytes behind the first one, and calls a
# body with fewer bytes left cut off. So the half it means begins at most 11 bytes before the end.
_HALF_AT_END: Final = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}.{0,5}\Z", re.DOTALL)
_HALF_BYTES: Final = 6
_FILE: Final = b";base64,"
_FILES_LOOKED_FOR: Final = 64


def read_json(body: bytes, *, nesting_max: int = NESTING_MAX) -> dict[str, Any]:
    """Return the object that `body` spells; INVALID_REQUEST `invalid_json` for anything else.

    Arrays and objects nest at most `nesting_max` deep, the outermost counted.
    """
    body = body.removeprefix(BYTE_ORDER_MARK)
    value = _decoded(lambda: _decode(body), body, nesting_max)
    if _may_be_deep(body, nesting_max) and _is_deeper(value, nesting_max):
        raise _too_deep(nesting_max)
    return _object(value)


def read_large_json(
    body: bytes, *, nesting_max: int = NESTING_MAX, run: Callable[[Steps[Any]], Any] = whole
) -> dict[str, Any]:
    """Return what `read_json` does, decoded in pieces, by steps that `run` does: for a thread beside a loop.

    TOO_LARGE for more values than a request has.
    """
    from smg_node.dialects.json_pieces import decode_in_pieces  # most nodes never see such a body

    body = body.removeprefix(BYTE_ORDER_MARK)
    pieces = decode_in_pieces(body, nesting_max=nesting_max)
    return _object(_decoded(lambda: run(pieces), body, nesting_max))


def is_light(body: bytes, *, heavy_max: int = LARGE_BYTES) -> bool:
    """Whether a body takes no longer to decode and to read than one of `heavy_max` bytes.

    It may be larger by files in base64: they are strings without escapes, which are only copied (0.2 ns a byte).
    """
    heavy = len(body)
    if not heavy_max < heavy <= LIGHT_BYTES:
        return heavy <= heavy_max
    end = 0
    for _ in range(_FILES_LOOKED_FOR):
        # What is between two files is heavy, so there is no need to look further than that may be long.
        start = body.find(_FILE, end, end + heavy_max)
        end = body.find(b'"', start) if start >= 0 else -1
        if end < 0 or body.find(b"\\", start, end) >= 0:
            return False
        heavy -= end - start
        if heavy <= heavy_max:
            return True
    return False


def _decoded(decode: Callable[[], Any], body: bytes, nesting_max: int) -> Any:
    try:
        return decode()
    except UnicodeDecodeError as error:
        raise _refused("the body is not valid UTF-8") from error
    except RecursionError as error:
        raise _too_deep(nesting_max) from error
    except msgspec.DecodeError as error:
        raise _refused(_trouble(body, str(error))) from error


def _object(value: Any) -> dict[str, Any]:
    if type(value) is not dict:
        raise _refused(f"the body must be a JSON object, not {kind_of(value)}")
    return value


def _trouble(body: bytes, why: str) -> str:
    """Return what is wrong with a body that the decoder refused, and what to do about it."""
    if not body or body.isspace():
        return "the body is empty: it must be a JSON object"
    if body.startswith(_UTF16_MARKS):
        return "the body is UTF-16: JSON is sent in UTF-8"
    if _SURROGATE in why or (_CUT_OFF in why and _ends_after_half(body)):
        return (
            "the body is not valid JSON: a string has one half of a surrogate pair (such as \\ud83d"
            " without what follows it): send both halves, the character itself, or \\ufffd"
        )
    if _CUT_OFF in why:
        return f"the body is not valid JSON: it is cut off after {len(body)} bytes"
    return f"the body is not valid JSON: {why}"


def _ends_after_half(body: bytes) -> bool:
    """Whether half a surrogate pair shortly before the end is all that is wrong with a body."""
    half = _HALF_AT_END.search(body, max(0, len(body) - 2 * _HALF_BYTES))
    if half is None:
        return False
    mended = body[: half.start()] + b"?" + body[half.start() + _HALF_BYTES :]
    try:
        _decode(mended)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _refused(message: str) -> SmgError:
    return invalid(message, None, "invalid_json")


def _too_deep(nesting_max: int) -> SmgError:
    return _refused(f"the body nests deeper than {nesting_max} levels")


def _may_be_deep(body: bytes, nesting_max: int) -> bool:
    """Whether there are more opening brackets than levels, those in strings included."""
    if len(body) <= nesting_max:
        return False
    if len(body) <= _COUNTED_BYTES_MAX:
        return body.count(b"{") + body.count(b"[") > nesting_max
    left = nesting_max
    for bracket in (b"{", b"["):
        at = body.find(bracket)
        while at >= 0:
            if left == 0:
                return True
            left -= 1
            at = body.find(bracket, at + 1)
    return False


def _is_deeper(value: Any, nesting_max: int) -> bool:
    level = [value] if type(value) in (dict, list) else []
    for _ in range(nesting_max):
        if not level:
            return False
        level = [
            child
            for parent in level
            for child in (parent.values() if type(parent) is dict else parent)
            if type(child) in (dict, list)
        ]
    return bool(level)
