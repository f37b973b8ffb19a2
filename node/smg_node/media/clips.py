"""Clips: data URLs of videos and sound, which engines are handed as they came: looked at here, never decoded. Pure.

Besides what `sources` takes, a video may be its frames, as vLLM's clients send them: pictures in base64 with commas
between them, of type `video/jpeg`.
"""

from collections.abc import Callable
from typing import Final

from smg_node.core.errors import invalid
from smg_node.core.generation.request import MediaPart
from smg_node.media.sources import InlineSource, source_of, too_large

_DATA: Final = "data:"
_HEAD_CHARACTERS_MAX: Final = 256
FRAMES: Final = "data:video/jpeg;base64,"
"""What a video begins with that is a list of pictures."""
_PIECE_CHARACTERS: Final = 1 << 18
"""Characters that are looked at in one piece, a fifth of a millisecond."""
_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_PADDING: Final = ("", "=", "==")


def check_clip(part: MediaPart, *, bytes_max: int, rest: Callable[[], None] | None = None) -> int:
    """Return how many bytes the data URL of a video or sound holds.

    INVALID_REQUEST at its path for one that is not base64, is empty, or holds more than `bytes_max` bytes. Takes a
    millisecond a megabyte, so that large ones are for a thread; `rest` is what that does after each piece.
    """
    if part.kind == "video" and part.source[: len(FRAMES)].lower() == FRAMES:
        return _check_frames(part, bytes_max, rest)
    source = source_of(part, bytes_max=bytes_max)
    assert isinstance(source, InlineSource), "others are fetched, or handed on as they are"
    _check_base64(part, source.start, len(source.encoded), rest)
    return source.size


def plain_url(address: str) -> str:
    """Return the same address with the head of a data URL in small letters: engines compare it as it is."""
    head = address[: address.find(",", 0, _HEAD_CHARACTERS_MAX) + 1]
    if head[: len(_DATA)].lower() != _DATA or head == head.lower():
        return address
    return f"{head.lower()}{address[len(head) :]}"


def _check_frames(part: MediaPart, bytes_max: int, rest: Callable[[], None] | None) -> int:
    address, begin, size = part.source, len(FRAMES), 0
    while begin <= len(address):
        end = address.find(",", begin)
        end = len(address) if end < 0 else end
        if begin == end or (end - begin) % 4:
            raise _broken(part, "is not base64: a frame's length is 0 or no multiple of 4")
        _check_base64(part, begin, end, rest)
        size += (end - begin) // 4 * 3
        begin = end + 1
    if size > bytes_max:
        raise too_large(part, size, bytes_max)
    return size


def _check_base64(part: MediaPart, begin: int, end: int, rest: Callable[[], None] | None) -> None:
    address = part.source
    while begin < end:
        stop = min(begin + _PIECE_CHARACTERS, end)
        piece = address[begin:stop]
        odd = piece.encode("utf-8", "replace").translate(None, _ALPHABET).decode("utf-8", "replace")
        if odd and (stop < end or odd not in _PADDING or not piece.endswith(odd)):
            raise _broken(part, "is not base64: it has a character that base64 does not have")
        begin = stop
        if rest is not None and begin < end:
            rest()


def _broken(part: MediaPart, why: str) -> Exception:
    return invalid(f"its data URL {why}", part.where)
