"""Media sources: what the address of a part is, data of its own or a place elsewhere. Pure.

Data URLs are taken in one form only: `data:[type][;parameter…];base64,…` with padding and without white space. The type
that stands in one is not believed: what a picture is shows in its bytes.
"""

import binascii
from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec

from smg_node.core.errors import SmgError, invalid
from smg_node.core.generation.request import MediaPart

URL_CHARACTERS_MAX: Final = 8_192
"""Characters of an address elsewhere; signed ones have one or two thousand."""
_PIECE_CHARACTERS: Final = 1 << 18
"""Characters that are decoded in one piece, a multiple of the four that stand for three bytes."""
_QUAD: Final = 4
_DATA: Final = "data:"
_HEAD_CHARACTERS_MAX: Final = 256
"""Characters of a data URL before its comma."""
_ELSEWHERE: Final = ("http://", "https://")
_EXAMPLES: Final = {
    "image": "image/png",
    "video": "video/mp4",
    "audio": "audio/wav",
    "file": "text/plain",
}
_NOUNS: Final = {"image": "picture", "video": "video", "audio": "sound", "file": "file"}


class InlineSource(msgspec.Struct, frozen=True, gc=False):
    """Data of its own: `encoded` is the base64 text from character `start` on, of `size` bytes when decoded."""

    encoded: str
    start: int
    size: int


class RemoteSource(msgspec.Struct, frozen=True, gc=False):
    """A place elsewhere, at an http or https URL that nobody has looked at."""

    url: str


Source: TypeAlias = InlineSource | RemoteSource


def source_of(part: MediaPart, *, bytes_max: int) -> Source:
    """Return what the address of a part is; nothing is decoded, and only the beginning of it looked at.

    INVALID_REQUEST at the part's path for an address of another kind, and for data of more than `bytes_max` bytes.
    """
    address = part.source
    if address[: len(_DATA)].lower() == _DATA:
        return _inline(part, bytes_max)
    if address[:8].lower().startswith(_ELSEWHERE):
        if len(address) > URL_CHARACTERS_MAX:
            why = (
                f"its URL may have at most {URL_CHARACTERS_MAX} characters, and has {len(address)}"
            )
            raise invalid(why, part.where)
        return RemoteSource(address)
    raise invalid("it must be an http, https or data URL", part.where)


def decoded(source: InlineSource, part: MediaPart, rest: Callable[[], None] | None = None) -> bytes:
    """Return the data of a part; INVALID_REQUEST at its path if it is not exactly base64.

    Takes up to 3 ms a megabyte, so that large ones are for a thread; `rest` is what that does after every half
    millisecond, where decoding keeps the interpreter: where it is not compiled, and of what is broken.
    """
    # With the first of them.
    from smg_node.media.pixels.kernels import KERNELS, VECTORS

    if KERNELS is not None:
        found: bytes | None = KERNELS.base64_decoded(source.encoded, source.start, VECTORS)
        if found is not None:
            return found
    encoded, begin = source.encoded, source.start
    pieces = []
    try:
        while begin < len(encoded):
            end = min(begin + _PIECE_CHARACTERS, len(encoded))
            piece = encoded[begin:end]
            if end < len(encoded) and piece[-1] == "=":
                raise ValueError("padding")
            pieces.append(binascii.a2b_base64(piece, strict_mode=True))
            begin = end
            if rest is not None and end < len(encoded):
                rest()
        if (len(encoded) - source.start) % _QUAD:
            # The decoder takes a sign of padding too many, unless a piece begins with it.
            raise ValueError("padding")
    except ValueError as error:
        raise _broken(part, f"is not base64: {_words(error)}") from error
    return b"".join(pieces)


def too_large(part: MediaPart, size: int, bytes_max: int) -> SmgError:
    """Return the error for one file of more bytes than one may have; a `size` of 0 is one that nobody knows."""
    has = f", and has {size}" if size else ""
    knob = part.kind if part.kind in ("video", "audio") else "image"
    return invalid(
        f"a {_NOUNS[part.kind]} may have at most {bytes_max} bytes{has} (media.{knob}_bytes_max)",
        part.where,
        "media_too_large",
    )


def _inline(part: MediaPart, bytes_max: int) -> InlineSource:
    address = part.source
    comma = address.find(",", 0, _HEAD_CHARACTERS_MAX)
    if comma < 0 or not address[:comma].lower().endswith(";base64"):
        raise _broken(part, f"must be base64: data:{_EXAMPLES[part.kind]};base64,…")
    start = comma + 1
    characters = len(address) - start
    if not characters:
        raise _broken(part, "has no data")
    if characters % 4:
        raise _broken(part, "is not base64: its length is no multiple of 4")
    size = characters // 4 * 3 - address.count("=", len(address) - 2)
    if size > bytes_max:
        raise too_large(part, size, bytes_max)
    return InlineSource(address, start, size)


def _broken(part: MediaPart, why: str) -> SmgError:
    code = "invalid_image" if part.kind == "image" else "invalid_value"
    return invalid(f"its data URL {why}", part.where, code)


def _words(error: ValueError) -> str:
    text = str(error)
    if "Only base64 data" in text or "ASCII" in text:
        return "it has a character that base64 does not have"
    return "its padding is not at its end"
