"""Media checks: everything that can be wrong with the pictures of a request, and what an engine does that trusts them.

The list is that of what a real vLLM was seen to do, which checks next to nothing: it answers something else with
status OK, or stops serving everybody. A simulated engine refuses such a request, so that a test sees it, unless it is
to be as trusting.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from smg_chaos.engine.media.media_inputs import KINDS, SentMedia
from smg_chaos.engine.media.vision_models import VisionModel


class Trusted(Enum):
    """What becomes of a request with this mistake at an engine that trusts it."""

    OTHER_ANSWER = auto()
    """It is answered, and the answer is another one."""
    SAME_ANSWER = auto()
    """It is answered as if nothing were wrong; not always, which makes it worse."""
    INTERNAL = auto()
    """This request fails."""
    STOPS = auto()
    """The engine serves nobody any more."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong."""

    trusted: Trusted
    message: str


@dataclass(frozen=True, slots=True)
class Takes:
    """What the engine takes. `placeholder` is the id of a picture's anchor; `normalizes`: 8-bit values only.

    `clips` are the ids of the anchors of videos and sound, by modality. `item_bytes_max` bounds what a data URL holds.
    `opens` and `closes` are the ids around the features of a step of a video, for models that have such.
    """

    model: VisionModel
    placeholder: int
    normalizes: bool
    items_max: Mapping[str, int]
    tokens_max: int
    hashes: bool
    schemes: frozenset[str]
    clips: Mapping[str, int] = field(default_factory=dict)
    item_bytes_max: int = 33_554_432
    opens: int | None = None
    closes: int | None = None

    def anchor(self, media: SentMedia) -> int | None:
        """Return the id that stands for a feature of what a batch of tensors holds, None where it takes no such."""
        return self.clips.get("video") if media.is_video else self.placeholder


_CLIPS = ("video", "audio")
_JPEG = b"\xff\xd8\xff"
_PNG = b"\x89PNG\r\n\x1a\n"


def mistakes(
    batches: Sequence[SentMedia], ids: Sequence[int], takes: Takes, *, handed: bool = False
) -> Iterator[Mistake]:
    """Yield everything that is wrong, over all batches of a request.

    `handed` is whether another engine works its prompt off, so that pictures need no values.
    """
    anchors = list(ids).count(takes.placeholder)
    told = 0
    for media in batches:
        if media.pixels is not None or media.ranges:
            anchor = takes.anchor(media)
            if anchor is None:
                yield Mistake(Trusted.INTERNAL, "tensors of videos for a model that sees none")
                continue
            if media.pixels is not None:
                yield from _tensors(media, takes)
            elif not handed:
                yield Mistake(Trusted.INTERNAL, "grids without pixels and without a KV transfer")
            yield from _ranges(media, ids, takes, anchor)
            if media.is_video:
                yield from _steps(media, ids, takes, anchor)
                continue
            told += sum(_within(ids, one, takes.placeholder) for one in media.ranges)
        else:
            yield from _files(media, takes)
            told += media.kinds.count("image") + len(media.files)
    if anchors != told:
        yield Mistake(
            Trusted.OTHER_ANSWER, f"{anchors} placeholders in the prompt, the pictures have {told}"
        )
    made = {KINDS.get(one.modality) for one in batches if one.ranges}
    referred = [kind for one in batches for kind in one.kinds]
    yield from _clips(referred, ids, takes, [kind for kind in _CLIPS if kind not in made])
    yield from _places(batches, ids, takes)
    pictures = [one for one in batches if not one.is_video]
    count = sum(max(len(one.ranges), one.kinds.count("image") + len(one.files)) for one in pictures)
    most = takes.items_max.get("image")
    if most is not None and count > most:
        yield Mistake(Trusted.SAME_ANSWER, f"{count} pictures, at most {most}")


def _places(batches: Sequence[SentMedia], ids: Sequence[int], takes: Takes) -> Iterator[Mistake]:
    """Yield what is wrong with all tensors of videos together: how many there are, and ids outside of their ranges."""
    made = [one for one in batches if one.is_video and one.ranges]
    anchor = takes.clips.get("video")
    if not made or anchor is None:
        return
    inside = sum(_within(ids, place, anchor) for one in made for place in one.ranges)
    there = list(ids).count(anchor)
    if there != inside:
        yield Mistake(
            Trusted.OTHER_ANSWER, f"{there} placeholders in the prompt, the videos have {inside}"
        )
    count, most = sum(len(one.ranges) for one in made), takes.items_max.get("video")
    if most is not None and count > most:
        yield Mistake(Trusted.SAME_ANSWER, f"{count} videos, at most {most}")


def _steps(media: SentMedia, ids: Sequence[int], takes: Takes, anchor: int) -> Iterator[Mistake]:
    """Yield what is wrong with videos beside what pictures have as well: names, times, and steps in the prompt."""
    grid = media.grid()
    if "video_grid_thw" not in media.sides or "image_grid_thw" in media.sides:
        yield Mistake(Trusted.STOPS, "videos without grids of videos")
        return
    if not takes.model.timed:
        seconds = media.sides.get("second_per_grid_ts")
        told = () if seconds is None else seconds.singles()
        if len(told) != len(grid) or not all(0 < each < math.inf for each in told):
            yield Mistake(Trusted.OTHER_ANSWER, f"seconds between steps are {list(told)}")
        return
    for (steps, rows, columns), (offset, length) in zip(grid, media.ranges, strict=False):
        at, end = offset, offset + length
        for _ in range(min(steps, length)):
            opens, closes = (_next(ids, token, at, end) for token in (takes.opens, takes.closes))
            if opens is None or closes is None:
                yield Mistake(Trusted.STOPS, f"a range of less than {steps} steps")
                break
            found = list(ids[opens:closes]).count(anchor)
            if found != rows * columns // takes.model.merge**2:
                yield Mistake(Trusted.OTHER_ANSWER, f"a step of {found} placeholders")
            at = closes + 1


def _next(ids: Sequence[int], token: int | None, start: int, end: int) -> int | None:
    return next((at for at in range(start, min(end, len(ids))) if ids[at] == token), None)


def _clips(
    referred: Sequence[str], ids: Sequence[int], takes: Takes, kinds: Sequence[str]
) -> Iterator[Mistake]:
    """Yield what is wrong with videos and sound by reference: how many there are, and their places."""
    for kind in kinds:
        count, anchor = referred.count(kind), takes.clips.get(kind)
        most = takes.items_max.get(kind, 999) if anchor is not None else 0
        if count > most:
            why = f"media_refs carries {count} {kind} items, above this worker's limit of {most}"
            yield Mistake(Trusted.INTERNAL, why)
        places = 0 if anchor is None else list(ids).count(anchor)
        if places != count:
            why = f"{places} placeholders of {kind} in the prompt for {count} items"
            yield Mistake(Trusted.INTERNAL, why)


def _within(ids: Sequence[int], place: tuple[int, int], placeholder: int) -> int:
    offset, length = place
    return list(ids[offset : offset + length]).count(placeholder)


def _files(media: SentMedia, takes: Takes) -> Iterator[Mistake]:
    for url in media.urls:
        if url.partition(":")[0].lower() not in takes.schemes:
            yield Mistake(Trusted.INTERNAL, "url scheme is not accepted by this worker")
        head, _, data = url.partition(",")
        if head[:5].lower() == "data:":
            if head.rpartition(";")[2] != "base64":
                yield Mistake(Trusted.INTERNAL, "Only base64 data URLs are supported for now.")
            if len(data) * 3 // 4 > takes.item_bytes_max:
                why = f"inline payload is {len(data) * 3 // 4} bytes, above the {takes.item_bytes_max}-byte cap"
                yield Mistake(Trusted.INTERNAL, why)
    for content in media.files:
        if not content.startswith((_JPEG, _PNG)):
            yield Mistake(Trusted.INTERNAL, "a file that is neither JPEG nor PNG")


def _tensors(media: SentMedia, takes: Takes) -> Iterator[Mistake]:
    pixels, model = media.pixels, takes.model
    assert pixels is not None
    if takes.normalizes != (pixels.dtype == "uint8"):
        how = "twice" if takes.normalizes else "never"
        yield Mistake(Trusted.OTHER_ANSWER, f"{pixels.dtype} values are normalised {how}")
    named = {media.key: pixels, **media.sides}
    for name in (*media.batched_keys, *media.flat_keys, *media.flat_keys.values()):
        if name not in named:
            yield Mistake(Trusted.STOPS, f"{name} is not there")
    items = len(media.ranges)
    for name in media.batched_keys:
        if name in named and named[name].shape[0] != items:
            yield Mistake(
                Trusted.STOPS, f"{name} has {named[name].shape[0]} rows for {items} items"
            )
    if model.patch:
        yield from _patches(media, takes)
    elif pixels.shape != (items, 3, model.side, model.side):
        yield Mistake(Trusted.STOPS, f"{media.key} is {list(pixels.shape)}")


def _patches(media: SentMedia, takes: Takes) -> Iterator[Mistake]:
    pixels, grid, items = media.pixels, media.grid(), len(media.ranges)
    assert pixels is not None
    rows = [math.prod(one) for one in grid]
    if len(pixels.shape) != 2 or pixels.shape[1] != takes.model.columns:
        yield Mistake(Trusted.STOPS, f"{media.key} is {list(pixels.shape)}")
    if len(grid) != items or sum(rows) != pixels.shape[0]:
        yield Mistake(
            Trusted.STOPS, f"grids of {sum(rows)} rows for {items} items, {pixels.shape[0]} rows"
        )
    if media.rows() != rows:
        yield Mistake(Trusted.STOPS, f"lengths {media.rows()}, grids say {rows}")


def _ranges(media: SentMedia, ids: Sequence[int], takes: Takes, anchor: int) -> Iterator[Mistake]:
    items = len(media.contents()) if media.pixels is not None else len(media.grid())
    if takes.hashes and not media.hashes:
        yield Mistake(Trusted.INTERNAL, "no hashes")
    elif takes.hashes and len(media.hashes) != items:
        yield Mistake(Trusted.SAME_ANSWER, f"{len(media.hashes)} hashes of {items} pictures")
    if media.placeholder != anchor:
        yield Mistake(Trusted.OTHER_ANSWER, f"{media.placeholder} is no placeholder")
    if len(media.ranges) != items:
        yield Mistake(Trusted.OTHER_ANSWER, f"{len(media.ranges)} ranges for {items} pictures")
    end = 0
    for place, count in zip(media.ranges, _tokens(media, takes), strict=False):
        offset, length = place
        found = _within(ids, place, anchor)
        if offset < end or offset + length > len(ids):
            yield Mistake(Trusted.OTHER_ANSWER, f"a range at {offset} of {length} ids")
        if found != count:
            yield Mistake(Trusted.OTHER_ANSWER, f"{found} placeholders for {count} features")
        if takes.tokens_max and count > takes.tokens_max:
            yield Mistake(
                Trusted.INTERNAL, f"an item of {count} features, at most {takes.tokens_max}"
            )
        end = offset + length


def _tokens(media: SentMedia, takes: Takes) -> list[int]:
    model = takes.model
    if not model.patch:
        return [model.tokens] * len(media.ranges)
    return [math.prod(one) // model.merge**2 for one in media.grid()]
