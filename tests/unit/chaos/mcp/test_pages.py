"""Pages that a tool returns: exact in size, the same for a number, and different for others."""

from hypothesis import given
from hypothesis import strategies as st

from smg_chaos.mcp.pages import page
from smg_chaos.mcp.tools import TOOLS


@given(st.integers(-(10**9), 10**9), st.integers(0, 5_000))
def test_a_page_has_exactly_its_size_and_is_plain(number: int, size: int) -> None:
    text = page(number, size)
    assert len(text.encode()) == size
    assert text.isascii()
    assert text == page(number, size)


def test_pages_may_be_larger_than_all_words_there_are() -> None:
    assert len(page(3, 1_000_000)) == 1_000_000


def test_pages_of_different_numbers_differ_from_the_first_line_on() -> None:
    pages = {page(number, 4_000).split("\n", 1)[1][:200] for number in range(500)}
    assert len(pages) == 500


async def test_the_tool_returns_a_page_only_where_it_is_asked_for_one() -> None:
    async def progress(done: int, total: int) -> None:
        raise AssertionError("nothing takes time")

    run = TOOLS["big"].run
    plain, told = await run({"bytes": 9}, progress), await run({"bytes": 40, "number": 2}, progress)
    assert plain["content"][0]["text"] == "x" * 9
    assert told["content"][0]["text"] == page(2, 40)
