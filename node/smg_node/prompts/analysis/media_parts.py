"""Media parts: which parts of a turn a template prints a place for: pictures, videos, sound; found by rendering. Pure.

A template is shown a text with a part of each type behind it. It knows the type if it prints more than for the text
alone. What it prints is not looked at: that a prompt has the model's own mark once for each part is checked with the
prompt itself.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from smg_node.core.generation.request import MediaKind

PicturePart: TypeAlias = Literal["", "image", "image_url"]
Printed: TypeAlias = Callable[[Any], Sequence[str | None]]
"""What a template prints for some conversations whose turn has this content; None where it prints nothing of use."""

_VALUE: Final = "smgvalue"
_PICTURES: Final[Mapping[PicturePart, dict[str, Any]]] = {
    "image": {"type": "image", "image": _VALUE},
    "image_url": {"type": "image_url", "image_url": {"url": _VALUE}},
}
_CLIPS: Final[tuple[MediaKind, ...]] = ("video", "audio")


def picture_part(words: Collection[str], told: dict[str, Any], printed: Printed) -> PicturePart:
    """Return the type of a picture's part, "" where none is known. `words` are the template's, `told` is a part of text."""
    if not any(kind in words for kind in _PICTURES):
        return ""
    return next((kind for kind, part in _PICTURES.items() if _shown(told, part, printed)), "")


def clip_parts(
    words: Collection[str], told: dict[str, Any], printed: Printed
) -> tuple[MediaKind, ...]:
    """Return the kinds whose part is printed, of videos and sound."""
    return tuple(_clips(words, told, printed))


def clip_part(kind: MediaKind, value: str = _VALUE) -> dict[str, Any]:
    """Return the part that stands for a video or a sound."""
    return {"type": kind, kind: value}


def _clips(words: Collection[str], told: dict[str, Any], printed: Printed) -> Iterator[MediaKind]:
    for kind in _CLIPS:
        if kind in words and _shown(told, clip_part(kind), printed):
            yield kind


def _shown(told: dict[str, Any], part: dict[str, Any], printed: Printed) -> bool:
    return any(
        text is not None and other is not None and len(text) > len(other)
        for text, other in zip(printed([told, part]), printed([told]), strict=True)
    )
