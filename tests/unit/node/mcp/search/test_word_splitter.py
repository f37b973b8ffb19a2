"""Words of names and descriptions: the same whatever their spelling."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.mcp.search.word_splitter import WordSplitter


def words(text: str) -> list[str]:
    return list(WordSplitter().words(text))


@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("", []),
        ("-- _ .", []),
        ("get_user-with.id", ["get", "user", "id"]),
        ("The cat is ON IT", ["cat"]),
        ("getUser", ["get", "user", "getuser"]),
        ("HTTPServer", ["http", "server", "httpserver"]),
        ("GitHub", ["git", "hub", "github"]),
        ("github", ["github"]),
        ("JSON", ["json"]),
        ("s3", ["s", "3", "s3"]),
        ("base64decode", ["base", "64", "decode", "base64decode"]),
        ("Straße", ["strasse"]),
        ("ÜberPrüfung", ["über", "prüfung", "überprüfung"]),
        ("fi", ["fi"]),
        ("天気予報", ["天気", "気予", "予報"]),
        ("雪", ["雪"]),
        ("GPU使用率", ["gpu", "使用", "用率"]),
        ("날씨 검색", ["날씨", "검색"]),
        ("погода", ["погода"]),
    ],
)
def test_a_text_is_split_into_words(text: str, split: list[str]) -> None:
    assert words(text) == split


@pytest.mark.parametrize(
    ("many", "one"),
    [
        ("files", "file"),
        ("queries", "query"),
        ("addresses", "address"),
        ("branches", "branch"),
        ("boxes", "box"),
        ("Issues", "issue"),
    ],
)
def test_a_plural_counts_as_its_singular(many: str, one: str) -> None:
    assert words(many) == words(one) == [one]


@pytest.mark.parametrize("word", ["class", "status", "analysis", "alias", "gas", "straßen"])
def test_what_only_looks_like_a_plural_stays(word: str) -> None:
    assert words(word) == [word.casefold()]


def test_a_word_that_was_split_before_is_split_the_same_way() -> None:
    splitter = WordSplitter()
    assert list(splitter.words("getUser")) == list(splitter.words("getUser"))


@given(st.text(max_size=200))
def test_words_are_short_folded_and_never_empty(text: str) -> None:
    for word in words(text):
        assert 0 < len(word) <= 200
        assert word == word.casefold()


@given(st.lists(st.text(max_size=20), max_size=5))
def test_the_words_of_two_texts_are_those_of_both(texts: list[str]) -> None:
    assert words(" ".join(texts)) == [word for text in texts for word in words(text)]
