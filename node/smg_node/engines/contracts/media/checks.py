"""Media checks: what must hold of the pictures of a request before a byte of it leaves. Pure.

Engines believe what they are sent: a range that is one too short gives another answer with status OK, and tensors that
contradict each other stop some engines for everybody. So nothing below relies on an engine's own checks. What fails
here is a mistake of ours, never the client's, and is an INTERNAL error.
"""

import string
from collections.abc import Mapping, Sequence
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.contracts.kv_transfer import is_fetched
from smg_node.engines.contracts.media.cards import FLOATS
from smg_node.engines.contracts.media.fields import size_of
from smg_node.engines.contracts.media.item_cuts import whole_numbers
from smg_node.engines.engine import EngineRequest, MediaCard
from smg_node.media.engine_media import (
    EncodedBatch,
    EngineMedia,
    MediaRange,
    ReferenceBatch,
    Tensor,
    TensorBatch,
)

CHECK_CODE: Final = "media_check_failed"
AXES_MAX: Final = 8
ID_MAX: Final = (1 << 32) - 1
_GRIDS: Final = ("image_grid_thw", "video_grid_thw", "grid_thws")
"""Names of tensors with a row of (temporal, rows, columns) of patches for each item."""
_HEX: Final = frozenset(string.hexdigits.lower())


class MediaCheckError(SmgError):
    """A request whose pictures are not what they say; `found` tells what, for logs: shapes and numbers only."""

    def __init__(self, found: str, where: str | None = None) -> None:
        super().__init__(
            ErrorKind.INTERNAL,
            "the pictures of this request could not be made ready for the engine",
            where=where,
            code=CHECK_CODE,
        )
        self.found = found


def check_media(request: EngineRequest, card: MediaCard | None) -> None:
    """Return if the pictures of `request` may be sent to the engine of `card`; MediaCheckError if not.

    Without a card its limits are not known, and all the rest is checked.
    """
    media = request.media
    assert media is not None
    if isinstance(media, TensorBatch):
        _check_card(card, "tensors", media.modality, len(media.ranges))
        _check_tensors(media)
        _check_keys(media)
        # Who fetches a prompt or its encoded pictures is sent no pixels: they were made for the engine it fetches from.
        unseen = is_fetched(request.transfer) or not request.pixels
        _check_dtype(media.pixels, None if unseen else card)
        _check_rooms(request, len(media.ranges))
        _check_prompt(request.ids, media)
        _check_ranges(media, card)
        _check_grid(media)
    elif isinstance(media, ReferenceBatch):
        _check_references(media, card)
    else:
        _check_card(card, "encoded", "image", len(media.items))
        for item in media.items:
            if len(item) <= 0:
                raise MediaCheckError("an encoded picture without bytes")


def shapes(media: EngineMedia) -> str:
    """Return shapes, keys and ranges of a request's pictures in a few words, for logs: no content and no URL."""
    if isinstance(media, ReferenceBatch):
        return f"{len(media.items)} references"
    if isinstance(media, EncodedBatch):
        return f"{len(media.items)} files of {[len(item) for item in media.items]} bytes"
    named = {media.pixel_key: media.pixels, **media.sides}
    words = [f"{name} {one.dtype}{list(one.shape)}" for name, one in named.items()]
    words += [f"{one.offset}+{one.length}({one.tokens})" for one in media.ranges[:16]]
    return f"{media.modality}: {', '.join(words)}; {len(media.ranges)} ranges"


# ── Limits ──────────────────────────────────────────────────────────────────


def _check_card(card: MediaCard | None, way: str, modality: str, count: int) -> None:
    if count <= 0:
        raise MediaCheckError("no item at all")
    if card is None:
        return
    if way not in card.ways:
        raise MediaCheckError(f"the engine takes {sorted(card.ways)}, not {way}")
    most = card.items_max.get(modality)
    if not (most is None or count <= most):
        raise MediaCheckError(f"{count} items of kind {modality}, at most {most}")


def _check_rooms(request: EngineRequest, count: int) -> None:
    """A picture without a room would never come, and a room of two pictures would mix them up."""
    if request.rooms:
        if len(request.rooms) != count:
            raise MediaCheckError(f"{len(request.rooms)} rooms for {count} items")
        if request.pixels:
            raise MediaCheckError("pictures that are encoded elsewhere and sent along")
        numbers = {room.number for room in request.rooms}
        if len(numbers) != count:
            raise MediaCheckError("two pictures in one room")
        if min(numbers) <= 0:
            raise MediaCheckError("a room without a number")


def _check_references(media: ReferenceBatch, card: MediaCard | None) -> None:
    if len(media.items) <= 0:
        raise MediaCheckError("no item at all")
    for modality in ("image", "video", "audio"):
        count = sum(item.modality == modality for item in media.items)
        if count:
            _check_card(card, "references", modality, count)
    for item in media.items:
        scheme = item.url.partition(":")[0].lower()
        known = card is None or scheme in card.schemes
        if not (known and bool(item.url)):
            raise MediaCheckError("a URL of a scheme that the engine does not fetch", item.where)


# ── Tensors by themselves ───────────────────────────────────────────────────


def _check_tensors(media: TensorBatch) -> None:
    for name, tensor in {media.pixel_key: media.pixels, **media.sides}.items():
        if not (1 <= len(tensor.shape) <= AXES_MAX):
            raise MediaCheckError(f"{name} has {len(tensor.shape)} axes")
        if not all(0 < length <= ID_MAX for length in tensor.shape):
            raise MediaCheckError(f"{name} has an empty axis")
        size = sum(map(size_of, tensor.pieces))
        if size != tensor.size:
            raise MediaCheckError(f"{name} has {size} bytes, its shape says {tensor.size}")
    if media.pixel_key in media.sides:
        raise MediaCheckError(f"{media.pixel_key} is there twice")


def _check_dtype(pixels: Tensor, card: MediaCard | None) -> None:
    """Floats to an engine that normalises are normalised twice, and 8-bit values to another one never."""
    if card is None:
        if not (pixels.dtype in FLOATS or pixels.dtype == "uint8"):
            raise MediaCheckError(f"pixels of {pixels.dtype}")
    elif card.device_normalizes:
        if pixels.dtype != "uint8":
            raise MediaCheckError(f"the engine normalises, and gets {pixels.dtype}")
    else:
        if pixels.dtype not in FLOATS:
            raise MediaCheckError(f"the engine does not normalise, and gets {pixels.dtype}")


def _check_keys(media: TensorBatch) -> None:
    """How tensors divide into items: by rows, by lengths that another one says, or not at all."""
    named = {media.pixel_key: media.pixels, **media.sides}
    count = len(media.ranges)
    for name in (*media.batched_keys, *media.flat_keys, *media.cpu_keys):
        if name not in named:
            raise MediaCheckError(f"a tensor {name} that is not there")
    for name in media.batched_keys:
        if name in media.flat_keys:
            raise MediaCheckError(f"{name} is cut in two ways")
        rows = named[name].shape[0]
        if rows != count:
            raise MediaCheckError(f"{name} has {rows} rows for {count} items")
    for name, lengths_name in media.flat_keys.items():
        lengths = _lengths(lengths_name, media.sides, count)
        rows = named[name].shape[0]
        if sum(lengths) != rows:
            raise MediaCheckError(f"{name} has {rows} rows, {lengths_name} says {sum(lengths)}")
    cut = media.pixel_key in media.batched_keys or media.pixel_key in media.flat_keys
    if not (cut or count == 1):
        raise MediaCheckError(f"{media.pixel_key} is not cut into {count} items")


def _lengths(name: str, sides: Mapping[str, Tensor], count: int) -> Sequence[int]:
    tensor = sides.get(name)
    if tensor is None or tensor.dtype != "int64" or len(tensor.shape) != 1:
        raise MediaCheckError(f"{name} does not say lengths")
    lengths = whole_numbers(tensor)
    if len(lengths) != count:
        raise MediaCheckError(f"{name} has {len(lengths)} lengths for {count} items")
    if min(lengths) <= 0:
        raise MediaCheckError(f"{name} has an item without rows")
    return lengths


# ── Tensors and prompt ──────────────────────────────────────────────────────


def _check_prompt(ids: Sequence[int], media: TensorBatch) -> None:
    """Ranges stand in order inside of the prompt, and have the placeholder's ids, which stand nowhere else."""
    total, end = 0, 0
    for one in media.ranges:
        stop = one.offset + one.length
        if one.length <= 0:
            raise MediaCheckError("a range without ids", one.where)
        if one.offset < end:
            raise MediaCheckError("a range that begins in the one before", one.where)
        if stop > len(ids):
            raise MediaCheckError(f"a range to {stop} in {len(ids)} ids", one.where)
        found = ids[one.offset : stop].count(media.placeholder)
        if found != one.tokens:
            raise MediaCheckError(f"{found} placeholders where {one.tokens} are said", one.where)
        total += found
        end = stop
    everywhere = ids.count(media.placeholder)
    if everywhere != total:
        raise MediaCheckError(f"{everywhere - total} placeholders outside of the ranges")


def _check_ranges(media: TensorBatch, card: MediaCard | None) -> None:
    seen: dict[str, MediaRange] = {}
    for one in media.ranges:
        if one.tokens <= 0:
            raise MediaCheckError("an item without features", one.where)
        if card is not None and card.tokens_max is not None:
            most = card.tokens_max
            if one.tokens > most:
                raise MediaCheckError(f"an item of {one.tokens} tokens, at most {most}", one.where)
        digest = one.digest
        proper = len(digest) == 64 and _HEX.issuperset(digest)
        if not proper:
            raise MediaCheckError("an identity that is no digest", one.where)
        same = seen.setdefault(digest, one)
        if same.tokens != one.tokens:
            raise MediaCheckError("one identity of two pictures", one.where)


def _check_grid(media: TensorBatch) -> None:
    """A grid says how many patches each item has; several of them become one token, as many for each."""
    for name in _GRIDS:
        if name not in media.sides:
            continue
        grid, count = media.sides[name], len(media.ranges)
        if not (grid.dtype == "int64" and grid.shape == (count, 3)):
            raise MediaCheckError(f"{name} is {list(grid.shape)}")
        values = whole_numbers(grid)
        if min(values) <= 0:
            raise MediaCheckError(f"{name} has a side of no length")
        rows = [values[at] * values[at + 1] * values[at + 2] for at in range(0, len(values), 3)]
        have = media.pixels.shape[0]
        if sum(rows) != have:
            raise MediaCheckError(f"{name} says {sum(rows)} rows, the pixels have {have}")
        _check_merge(name, rows, media)
        flat = media.flat_keys.get(media.pixel_key)
        if flat is not None:
            lengths = list(whole_numbers(media.sides[flat]))
            if lengths != rows:
                raise MediaCheckError(f"{flat} and {name} do not agree")
        if len(media.pixels.shape) == 2:
            columns = media.pixels.shape[1]
            if columns % 3 != 0:
                raise MediaCheckError(f"{columns} columns are not those of three colours")


def _check_merge(name: str, rows: Sequence[int], media: TensorBatch) -> None:
    """`rows` patches an item become `tokens`: by the same square number for all of them."""
    seen: dict[str, int] = {}
    merged = rows[0] // media.ranges[0].tokens
    side = round(merged**0.5)
    if not (side * side == merged and merged > 0):
        raise MediaCheckError(f"{merged} patches a token are no square")
    for count, one in zip(rows, media.ranges, strict=True):
        if count != one.tokens * merged:
            raise MediaCheckError(
                f"{name} says {count} patches of an item of {one.tokens} tokens, {merged} each",
                one.where,
            )
        same = seen.setdefault(one.digest, count)
        if same != count:
            raise MediaCheckError("one identity of two pictures", one.where)
