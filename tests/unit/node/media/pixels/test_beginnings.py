"""Beginnings of files: what they say of a picture's size is what the whole file says, wherever they are cut."""

from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

import support.media
from smg_node.core.errors import SmgError
from smg_node.media.pixels.beginnings import size_is_known
from smg_node.media.pixels.decode import DecodeLimits, read_header

FOLDER: Final = Path(*support.media.__path__) / "odd_pictures"
LIMITS: Final = DecodeLimits(1 << 20)
EARLY: Final = ("jpeg-420", "jpeg-progressive", "jpeg-turned-6", "gif", "bmp", "png", "webp")
NEVER: Final = ("tiff", "tiff-turned-6", "avif", "avif-turned-6")


def same(_: int, __: int) -> bool:
    """A picture is the same when it is turned."""
    return True


def other(_: int, __: int) -> bool:
    """It is another one."""
    return False


def sides(data: bytes) -> tuple[int, int] | None:
    """Return the sides of a picture, None where it is refused."""
    try:
        header = read_header(data, LIMITS, None)
    except SmgError:
        return None
    return header.width, header.height


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.iterdir()))
def test_a_beginning_that_is_enough_says_what_all_says(name: str) -> None:
    data = (FOLDER / name).read_bytes()
    whole = sides(data)
    for end in (*range(8, min(len(data), 1500), 3), *range(1500, len(data), 101)):
        beginning = data[:end]
        if size_is_known(beginning, other):
            assert sides(beginning) == whole, end
        elif size_is_known(beginning, same):
            found = sides(beginning)
            assert found is not None
            assert found in (whole, found if whole is None else whole[::-1]), end


@pytest.mark.parametrize("name", EARLY)
def test_the_first_bytes_are_enough_of_most(name: str) -> None:
    assert size_is_known((FOLDER / name).read_bytes()[:1500], same)


@pytest.mark.parametrize("name", ["png", "png-turned-6", "webp", "webp-turned-6"])
def test_what_may_be_turned_at_its_end_is_read_whole_where_that_matters(name: str) -> None:
    data = (FOLDER / name).read_bytes()
    assert not size_is_known(data[:-1], other)


@pytest.mark.parametrize("name", NEVER)
def test_of_some_formats_only_all_is_enough(name: str) -> None:
    assert not size_is_known((FOLDER / name).read_bytes()[:-1], same)


@pytest.mark.parametrize("name", ["svg", "pdf", "nothing"])
def test_of_what_is_no_picture_no_more_is_read(name: str) -> None:
    data = (FOLDER / name).read_bytes()
    assert size_is_known(data + bytes(1024), other)
    assert not size_is_known(data[:8], other), "these may be the first bytes of anything"


@given(
    st.sampled_from(
        [b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"BM", b"RIFF____WEBP", b""]
    ),
    st.binary(max_size=200),
)
def test_any_bytes_are_enough_or_not(head: bytes, rest: bytes) -> None:
    assert size_is_known(head + rest, same) in (True, False)
