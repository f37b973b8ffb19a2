"""Media checks: everything that can be wrong with the pictures of a request, and what an engine does that trusts them.

The list is that of what a real vLLM was seen to do, which checks next to nothing: it answers something else with
status OK, or stops serving everybody. A simulated engine refuses such a request, so that a test sees it, unless it is
to be as trusting.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from smg_chaos.engine.media.media_inputs import SentMedia
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

    `clips` is the id of a clip's anchor, None for a model that sees none; `opens` and `closes` are those of the tokens
    around the features of a step, for models that have such.
    """

    model: VisionModel
    placeholder: int
    normalizes: bool
    items_max: Mapping[str, int]
    tokens_max: int
    hashes: bool
    schemes: frozenset[str]
    clips: int | None = None
    opens: int | None = None
    closes: int | None = None

    def anchor(self, media: SentMedia) -> int | None:
        """Return the id that stands for a feature of what a batch holds."""
        return self.clips if media.is_video else self.placeholder


_JPEG = b"\xff\xd8\xff"
_PNG = b"\x89PNG\r\n\x1a\n"


def mistakes(
    batches: Sequence[SentMedia], ids: Sequence[int], takes: Takes, *, handed: bool = False
) -> Iterator[Mistake]:
    """Yield everything that is wrong, over all batches of a request.

    `handed` is whether another engine works its prompt off, so that pictures need no values.
    """
    told = {takes.placeholder: 0} | ({} if takes.clips is None else {takes.clips: 0})
    for media in batches:
        anchor = takes.anchor(media)
        if anchor is None:
            yield Mistake(Trusted.INTERNAL, "a clip for a model that sees none")
            continue
        if media.pixels is not None or media.ranges:
            if media.pixels is not None:
                yield from _tensors(media, takes)
            elif not handed:
                yield Mistake(Trusted.INTERNAL, "grids without pixels and without a KV transfer")
            yield from _ranges(media, ids, takes, anchor)
            if media.is_video:
                yield from clip_mistakes(media, ids, takes, anchor)
            told[anchor] += sum(_within(ids, one, anchor) for one in media.ranges)
        else:
            yield from _files(media, takes)
            told[anchor] += len(media.urls) + len(media.files)
    for anchor, count in told.items():
        there = list(ids).count(anchor)
        if there != count:
            what = "pictures" if anchor == takes.placeholder else "clips"
            yield Mistake(
                Trusted.OTHER_ANSWER, f"{there} placeholders in the prompt, the {what} have {count}"
            )
    yield from _counts(batches, takes)


def _counts(batches: Sequence[SentMedia], takes: Takes) -> Iterator[Mistake]:
    for kind, what in (("image", "pictures"), ("video", "clips")):
        of_kind = [one for one in batches if one.is_video == (kind == "video")]
        count = sum(max(len(one.ranges), len(one.urls) + len(one.files)) for one in of_kind)
        most = takes.items_max.get(kind)
        if most is not None and count > most:
            yield Mistake(Trusted.SAME_ANSWER, f"{count} {what}, at most {most}")


def clip_mistakes(
    media: SentMedia, ids: Sequence[int], takes: Takes, anchor: int
) -> Iterator[Mistake]:
    """Yield what is wrong with clips beside what pictures have as well: their names, times, and steps in the prompt."""
    grid = media.grid()
    if "video_grid_thw" not in media.sides or "image_grid_thw" in media.sides:
        yield Mistake(Trusted.STOPS, "clips have no grids of clips")
        return
    if not takes.model.timed:
        seconds = media.sides.get("second_per_grid_ts")
        told = () if seconds is None else seconds.singles()
        if len(told) != len(grid) or not all(0 < each < math.inf for each in told):
            yield Mistake(Trusted.OTHER_ANSWER, f"seconds between steps are {list(told)}")
        return
    for (steps, rows, columns), (offset, length) in zip(grid, media.ranges, strict=False):
        end = offset + length
        for _ in range(min(steps, length)):
            opens, closes = (_next(ids, each, offset, end) for each in (takes.opens, takes.closes))
            if opens is None or closes is None:
                yield Mistake(Trusted.STOPS, f"a range of less than {steps} steps")
                break
            found = list(ids[opens:closes]).count(anchor)
            if found != rows * columns // takes.model.merge**2:
                yield Mistake(Trusted.OTHER_ANSWER, f"a step of {found} placeholders")
            offset = closes + 1


def _next(ids: Sequence[int], token: int | None, start: int, end: int) -> int | None:
    return next((at for at in range(start, min(end, len(ids))) if ids[at] == token), None)


def _within(ids: Sequence[int], place: tuple[int, int], placeholder: int) -> int:
    offset, length = place
    return list(ids[offset : offset + length]).count(placeholder)


def _files(media: SentMedia, takes: Takes) -> Iterator[Mistake]:
    for url in media.urls:
        if url.partition(":")[0].lower() not in takes.schemes:
            yield Mistake(Trusted.INTERNAL, "url scheme is not accepted by this worker")
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
