"""Citations in texts: where they stand, what is none, and that cutting the text changes nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.generation.citations import CitationReader, citations_in
from smg_node.core.generation.tool_serving import Source

SOURCES = tuple(Source(url=f"https://a.org/{n}", title=f"T{n}") for n in range(1, 4))


def cited(text: str) -> list[tuple[str, int]]:
    """Return what stands at each citation, and its number."""
    found = citations_in(text, SOURCES)
    for one in found:
        assert one.source is SOURCES[one.number - 1]
    return [(text[one.start : one.end], one.number) for one in found]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("Nothing.", []),
        ("So it is [1].", [("[1]", 1)]),
        ("So it is[1][3].", [("[1]", 1), ("[3]", 3)]),
        ("So it is [1, 2].", [("[1, 2]", 1), ("[1, 2]", 2)]),
        ("So it is [2,2;1].", [("[2,2;1]", 2), ("[2,2;1]", 1)]),
        ("So it is [ 1 ].", [("[ 1 ]", 1)]),
        ("Ünï 言葉 [2]!", [("[2]", 2)]),
        ("So it is 【1】 and 【2†L3-L5】.", [("【1】", 1), ("【2†L3-L5】", 2)]),
        ("[[1]]", [("[1]", 1)]),
        ("[a [1]", [("[1]", 1)]),
        ("[1](https://a.org)", [("[1]", 1)]),
        ("[4] [0] [99999] [1234]", []),
        ("[1, 4]", [("[1, 4]", 1)]),
        ("[] [a] [1a] [-1] [1.] [1 2] [x1]", []),
        ("[1\n]", []),
        ("[1", []),
        ("[١]", []),
        ("【" + "1" * 100 + "】", []),
        ("see `a[1]` and [2]", [("[2]", 2)]),
        ("see ``a`[1]`` and [2]", [("[2]", 2)]),
        ("a lone ` tick [1]\nand [2]", [("[2]", 2)]),
        ("```\na[1]\n```\n[2]", [("[2]", 2)]),
        ("  ```py\na[1]\n``\na[1]\n````\n[2]", [("[2]", 2)]),
        ("text ```a[1]``` [2]", [("[2]", 2)]),
        ("[`1`]", []),
        ("[1`]` [2]", [("[2]", 2)]),
    ],
)
def test_what_is_cited(text: str, found: list[tuple[str, int]]) -> None:
    assert cited(text) == found


def test_without_sources_nothing_is_cited() -> None:
    assert citations_in("[1] [2]", ()) == []


def test_a_citation_is_told_with_its_last_character() -> None:
    reader = CitationReader(SOURCES)
    assert reader.feed("So [") == reader.feed("1") == []
    assert [one[:3] for one in reader.feed("]. ")] == [(3, 6, 1)]


_PIECES = st.sampled_from(
    ["[", "]", "1", "2", "9", ",", " ", "`", "```", "\n", "a", "【", "】", "†", "ü"]
)


@given(st.lists(_PIECES, max_size=60), st.lists(st.integers(0, 60), max_size=8))
def test_any_cutting_of_the_text_gives_the_same(pieces: list[str], cuts: list[int]) -> None:
    text = "".join(pieces)
    reader, found, begin = CitationReader(SOURCES), [], 0
    for end in [*sorted(min(cut, len(text)) for cut in cuts), len(text)]:
        found += reader.feed(text[begin:end])
        begin = end
    assert found == citations_in(text, SOURCES)
    for one in found:
        assert text[one.start] in "[【"
        assert text[one.end - 1] in "]】"


@given(st.text(max_size=100))
def test_any_text_has_citations_in_order(text: str) -> None:
    found = citations_in(text, SOURCES)
    assert [one.start for one in found] == sorted(one.start for one in found)
