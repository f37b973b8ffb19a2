"""Expansion of a prompt: each picture's anchor replaced by the ids of its layout, and where its features then are; pure.

Templates write one anchor a picture; engines want the placeholder as often as the picture has features. Both happen on
ids, after the prompt was encoded, so that the cache of encoded prompts keeps them small and whole: two requests that
differ in a picture's size only share its entry.
"""

from array import array
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from smg_node.core.errors import invalid
from smg_node.core.generation.request import TokenIds
from smg_node.media.engine_media import MediaRange
from smg_node.media.family import PictureLayout


class PlacedPicture(msgspec.Struct, frozen=True):
    """A picture that is to be put into the prompt: what replaces its anchor, and who it is.

    `tokens` is how many of the layout's ids stand for features, `where` the JSON path of the part.
    """

    layout: PictureLayout
    tokens: int
    digest: str
    where: str


class Expansion(NamedTuple):
    """The prompt with all its pictures, and the range of each, ascending and disjoint."""

    ids: TokenIds
    ranges: tuple[MediaRange, ...]


def repeated(token: int, times: int) -> TokenIds:
    """Return an id many times."""
    return array("I", (token,)) * times


def expand(ids: TokenIds, anchor: int, pictures: Sequence[PlacedPicture]) -> Expansion:
    """Return `ids` with the anchors replaced by the pictures' layouts, in order.

    `ids` is left as it is. SmgError `invalid_value` at the path of the first picture where there are more or fewer
    anchors than pictures: somebody typed the anchor's text, or the template left a picture out, and no one can tell
    whose place is whose.
    """
    places = _places(ids, anchor)
    if len(places) != len(pictures):
        raise _mismatch(len(places), pictures)
    made = array("I")
    ranges: list[MediaRange] = []
    done = 0
    for place, picture in zip(places, pictures, strict=True):
        made += ids[done:place]
        ranges.append(_range(len(made), picture))
        made += _array(picture.layout.ids)
        done = place + 1
    made += ids[done:]
    for left, right, one in pictures[0].layout.joins if pictures else ():
        made, ranges = _joined(made, ranges, left, right, one)
    return Expansion(made, tuple(ranges))


def expanded_length(ids: TokenIds, pictures: Sequence[PlacedPicture]) -> int:
    """Return how long the expanded prompt will be at most, without making it: what is joined only shortens it."""
    return len(ids) + sum(len(picture.layout.ids) - 1 for picture in pictures)


def _places(ids: TokenIds, token: int) -> list[int]:
    """Return where a token stands. Looked for as bytes: `array.index` makes a number of each id on its way."""
    width = ids.itemsize
    data, needle = ids.tobytes(), array("I", (token,)).tobytes()
    places: list[int] = []
    at = data.find(needle)
    while at >= 0:
        place, within = divmod(at, width)
        if not within:
            places.append(place)
        at = data.find(needle, at + 1 if within else at + width)
    return places


def _joined(
    ids: TokenIds, ranges: list[MediaRange], left: int, right: int, one: int
) -> tuple[TokenIds, list[MediaRange]]:
    """Return the prompt with `one` for each `left` that `right` follows, first come, and its ranges moved along."""
    made = array("I")
    moved = [each.offset for each in ranges]
    done = 0
    for place in _places(ids, left):
        if place < done or ids[place + 1 : place + 2] != array("I", (right,)):
            continue
        made += ids[done:place]
        made.append(one)
        done = place + 2
        moved = [offset - (each.offset > place) for each, offset in zip(ranges, moved, strict=True)]
    made += ids[done:]
    return made, [
        msgspec.structs.replace(each, offset=offset)
        for each, offset in zip(ranges, moved, strict=True)
    ]


def _range(start: int, picture: PlacedPicture) -> MediaRange:
    layout = picture.layout
    length = len(layout.ids) - layout.before - layout.after
    assert 0 < picture.tokens <= length
    return MediaRange(
        offset=start + layout.before,
        length=length,
        tokens=picture.tokens,
        digest=picture.digest,
        where=picture.where,
    )


def _array(ids: Sequence[int]) -> TokenIds:
    return ids if isinstance(ids, array) else array("I", ids)


def _mismatch(found: int, pictures: Sequence[PlacedPicture]) -> Exception:
    where = pictures[0].where if pictures else None
    if found > len(pictures):
        return invalid(
            f"the prompt has {found} places for pictures and {len(pictures)} pictures: a text must not contain the "
            "model's own placeholder of a picture",
            where,
        )
    return invalid(
        f"the model's chat template made {found} places for {len(pictures)} pictures", where
    )
