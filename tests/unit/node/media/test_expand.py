import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import token_ids
from smg_node.media.engine_media import MediaRange
from smg_node.media.expand import PlacedPicture, expand, expanded_length, repeated
from smg_node.media.family import PictureLayout

ANCHOR, PAD, START, END = 90, 91, 92, 93
TEXT = st.lists(st.integers(0, 80), max_size=12)


def picture(tokens: int = 3, number: int = 0) -> PlacedPicture:
    return PlacedPicture(
        layout=PictureLayout(repeated(PAD, tokens)),
        tokens=tokens,
        digest=f"{number:064x}",
        where=f"messages[0].content[{number}]",
    )


def test_a_prompt_without_pictures_stays_as_it_is() -> None:
    ids = token_ids([1, 2, 3])
    found = expand(ids, ANCHOR, ())
    assert found.ids == ids
    assert found.ids is not ids
    assert found.ranges == ()


def test_the_anchor_alone_becomes_the_whole_layout() -> None:
    found = expand(token_ids([ANCHOR]), ANCHOR, [picture(2)])
    assert found.ids == token_ids([PAD, PAD])
    assert found.ranges == (
        MediaRange(
            offset=0, length=2, tokens=2, digest=f"{0:064x}", where="messages[0].content[0]"
        ),
    )


def test_two_pictures_side_by_side_have_ranges_side_by_side() -> None:
    found = expand(token_ids([7, ANCHOR, ANCHOR, 8]), ANCHOR, [picture(2, 0), picture(3, 1)])
    assert found.ids == token_ids([7, PAD, PAD, PAD, PAD, PAD, 8])
    assert [(each.offset, each.length) for each in found.ranges] == [(1, 2), (3, 3)]


def test_a_range_leaves_out_what_its_layout_says() -> None:
    layout = PictureLayout([START, PAD, PAD, END], before=1, after=1)
    placed = PlacedPicture(layout=layout, tokens=2, digest="", where="")
    found = expand(token_ids([5, ANCHOR, 6]), ANCHOR, [placed])
    assert found.ids == token_ids([5, START, PAD, PAD, END, 6])
    assert (found.ranges[0].offset, found.ranges[0].length) == (2, 2)


def test_bytes_of_two_neighbours_are_no_anchor() -> None:
    # Little-endian: the bytes of 0x5A000000 and 0x00000000 hold those of 0x5A at each offset that is no id's.
    ids = token_ids([0x5A000000, 0, 0x5A0000, 0, 0x5A00, 0, 0x5A, 0])
    found = expand(ids, 0x5A, [picture(1)])
    assert found.ids == token_ids([0x5A000000, 0, 0x5A0000, 0, 0x5A00, 0, PAD, 0])
    assert found.ranges[0].offset == 6


def test_a_layout_may_have_the_anchor_in_it() -> None:
    layout = PictureLayout([START, ANCHOR, PAD, END])
    placed = PlacedPicture(layout=layout, tokens=1, digest="", where="")
    found = expand(token_ids([ANCHOR, 6, ANCHOR]), ANCHOR, [placed, placed])
    assert found.ids == token_ids([START, ANCHOR, PAD, END, 6, START, ANCHOR, PAD, END])


def test_a_placeholder_typed_by_a_user_is_refused_at_the_first_picture() -> None:
    with pytest.raises(SmgError) as refused:
        expand(token_ids([ANCHOR, 4, ANCHOR]), ANCHOR, [picture()])
    assert refused.value.status == 400
    assert refused.value.where == "messages[0].content[0]"
    assert "2 places for pictures and 1 pictures" in refused.value.message


def test_a_placeholder_without_any_picture_is_refused() -> None:
    with pytest.raises(SmgError) as refused:
        expand(token_ids([4, ANCHOR]), ANCHOR, ())
    assert refused.value.status == 400
    assert refused.value.where is None


def test_a_template_that_leaves_a_picture_out_is_refused() -> None:
    with pytest.raises(SmgError) as refused:
        expand(token_ids([ANCHOR]), ANCHOR, [picture(1, 0), picture(1, 1)])
    assert refused.value.status == 400
    assert "chat template" in refused.value.message


ONE, TWO, THREE, FOUR = 11, 12, 13, 14
JOINS = ((ONE, TWO, THREE), (TWO, ONE, THREE), (TWO, TWO, FOUR))


def lines(number: int = 0) -> PlacedPicture:
    layout = PictureLayout([TWO, PAD, PAD, TWO], before=1, after=1, joins=JOINS)
    return PlacedPicture(layout=layout, tokens=2, digest=f"{number:064x}", where="")


@pytest.mark.parametrize(
    ("ids", "made"),
    [
        ([ANCHOR], [TWO, PAD, PAD, TWO]),
        ([5, ONE, ANCHOR, 6], [5, THREE, PAD, PAD, TWO, 6]),
        ([TWO, ANCHOR, ONE, 6], [FOUR, PAD, PAD, THREE, 6]),
        ([THREE, ANCHOR, TWO], [THREE, TWO, PAD, PAD, FOUR]),
        ([ANCHOR, ANCHOR], [TWO, PAD, PAD, FOUR, PAD, PAD, TWO]),
        ([ANCHOR, ONE, ANCHOR], [TWO, PAD, PAD, TWO, THREE, PAD, PAD, TWO]),
        ([ONE, ONE, ANCHOR, TWO, TWO], [ONE, THREE, PAD, PAD, FOUR, TWO]),
    ],
)
def test_newlines_that_meet_become_one_token_and_ranges_move(
    ids: list[int], made: list[int]
) -> None:
    found = expand(token_ids(ids), ANCHOR, [lines(n) for n in range(ids.count(ANCHOR))])
    assert list(found.ids) == made
    for each in found.ranges:
        assert list(found.ids[each.offset : each.offset + each.length]) == [PAD, PAD]


@given(ids=st.lists(st.sampled_from((5, ONE, TWO, THREE, ANCHOR)), max_size=24))
def test_ranges_hold_their_placeholders_wherever_newlines_are_joined(ids: list[int]) -> None:
    pictures = [lines(n) for n in range(ids.count(ANCHOR))]
    found = expand(token_ids(ids), ANCHOR, pictures)
    assert len(found.ids) <= expanded_length(token_ids(ids), pictures)
    assert list(found.ids).count(PAD) == 2 * len(pictures)
    newlines = {5: 0, PAD: 0, ONE: 1, TWO: 2, THREE: 3, FOUR: 4}
    written = sum(newlines[one] for one in ids if one != ANCHOR) + 4 * len(pictures)
    assert sum(newlines[one] for one in found.ids) == written
    for each in found.ranges:
        assert list(found.ids[each.offset : each.offset + each.length]) == [PAD, PAD]


@given(texts=st.lists(TEXT, min_size=1, max_size=6), data=st.data())
def test_every_place_holds_its_picture_and_everything_else_is_untouched(
    texts: list[list[int]], data: st.DataObject
) -> None:
    pictures = []
    for number in range(len(texts) - 1):
        before, tokens, after = (
            data.draw(st.integers(0, 2)),
            data.draw(st.integers(1, 5)),
            data.draw(st.integers(0, 2)),
        )
        layout = [START] * before + [PAD] * tokens + [END] * after
        pictures.append(
            PlacedPicture(
                layout=PictureLayout(layout, before=before, after=after),
                tokens=tokens,
                digest=f"{number:064x}",
                where=str(number),
            )
        )
    ids = token_ids()
    wanted: list[int] = []
    for number, text in enumerate(texts):
        ids.extend(text)
        wanted += text
        if number < len(pictures):
            ids.append(ANCHOR)
            wanted += pictures[number].layout.ids
    kept = ids[:]
    found = expand(ids, ANCHOR, pictures)
    assert ids == kept
    assert list(found.ids) == wanted
    assert len(found.ids) == expanded_length(ids, pictures)
    end = 0
    for placed, place in zip(pictures, found.ranges, strict=True):
        assert place.offset >= end
        end = place.offset + place.length
        inside = found.ids[place.offset : end]
        assert list(inside) == [PAD] * placed.tokens
        assert (place.digest, place.where) == (placed.digest, placed.where)
    outside = [one for one in wanted if one == PAD]
    assert len(outside) == sum(placed.tokens for placed in pictures)


@given(ids=st.lists(st.integers(88, 92), max_size=20), count=st.integers(0, 8))
def test_any_other_number_of_anchors_is_refused_and_nothing_else(
    ids: list[int], count: int
) -> None:
    pictures = [picture(1, number) for number in range(count)]
    if ids.count(ANCHOR) == count:
        assert len(expand(token_ids(ids), ANCHOR, pictures).ranges) == count
        return
    with pytest.raises(SmgError) as refused:
        expand(token_ids(ids), ANCHOR, pictures)
    assert refused.value.status == 400
