"""Sources in texts that servers write for a reader."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.generation.tool_serving import Source
from smg_node.mcp.builtin import labelled_sources as labelled_sources_module
from smg_node.mcp.builtin.domains import web_address
from smg_node.mcp.builtin.found_sources import SOURCES_MAX
from smg_node.mcp.builtin.labelled_sources import labelled_sources

FIRST = Source(url="https://a.org/1", title="First", text="about one")
SECOND = Source(url="https://b.org/2", title="Second: more", text="about two\n\nin lines")


@pytest.mark.parametrize(
    "text",
    [
        "Title: First\nURL: https://a.org/1\nContent: about one\n\n"
        "Title: Second: more\nURL: https://b.org/2\nContent: about two\n\nin lines",
        "Detailed Results:\n\nTitle: First\nURL: https://a.org/1\nContent: about one\n---\n"
        "Title: Second: more\nURL: https://b.org/2\nContent:\nabout two\n\nin lines\n",
        "Title: First\nDescription: about one\nURL: https://a.org/1\n\n"
        "Title: Second: more\nURL: https://b.org/2\nDescription: about two\n\nin lines",
        "Found 2 search results:\n\n1. First\n   URL: https://a.org/1\n   Summary: about one\n\n"
        "2. Second: more\n   URL: https://b.org/2\n   Summary: about two\n\nin lines",
        "1. **Title:** First\n**URL:** https://a.org/1\n**Snippet:** about one\n\n"
        "2. **Title:** Second: more\n**URL:** https://b.org/2\n**Snippet:** about two\n\nin lines",
        "title: First\nlink: https://a.org/1\nsnippet: about one\n\n"
        "title: Second: more\nlink: https://b.org/2\nsnippet: about two\n\nin lines",
    ],
)
def test_results_in_labelled_lines(text: str) -> None:
    first, second = labelled_sources(text)
    assert (first.url, first.title) == (FIRST.url, FIRST.title)
    assert second == SECOND


def test_author_and_date_may_stand_between() -> None:
    text = (
        "Title: First\nAuthor: somebody\nPublished Date: 2026-11-01\nURL: https://a.org/1\n"
        "Text: about one\n1. a list\n2. in it\nNote: all of it"
    )
    (found,) = labelled_sources(text)
    assert found.age == "2026-11-01"
    assert found.text == "about one\n1. a list\n2. in it\nNote: all of it"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "There is much about it.",
        "Title: First\nContent: about one",
        "URL: https://a.org",
        "Title: First\nURL: javascript:alert(1)",
        "Title: First\nURL:\nContent: about one",
        "1. one\n2. two\n3. https://a.org",
        "Title: A\nTitle: B\nName: C",
    ],
)
def test_texts_in_which_there_are_none(text: str) -> None:
    assert labelled_sources(text) == []


def test_many_are_cut() -> None:
    text = "".join(f"Title: T\nURL: https://a.org/{n}\nContent: t\n\n" for n in range(200))
    assert len(labelled_sources(text)) == SOURCES_MAX


_LINES = st.sampled_from(
    [
        "Title: a",
        "URL: https://a.org",
        "URL: b",
        "Content: c",
        "1. d",
        "",
        "e",
        "**Link:** https://f.org",
    ]
)


@given(st.lists(_LINES, max_size=20).map("\n".join) | st.text(max_size=80))
def test_any_text_has_sources_with_an_address_or_none(text: str) -> None:
    assert all(one.url.startswith("http") for one in labelled_sources(text))


def test_no_more_is_read_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counted(text: str) -> str:
        read.append(text)
        return web_address(text)

    monkeypatch.setattr(labelled_sources_module, "web_address", counted)
    text = "".join(f"Title: {n}\nURL: https://x.test/{n}\nContent: c\n" for n in range(1_000))
    found = labelled_sources(text)
    assert [source.title for source in found] == [str(n) for n in range(SOURCES_MAX)]
    assert len(read) == SOURCES_MAX
