"""Fetches of pages: which addresses are asked for, what a server's tool is told, and what its answer is shown as."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.generation.tool_serving import RunResult, Source
from smg_node.mcp.builtin.builtin_result import read_builtin
from smg_node.mcp.builtin.server_arguments import arguments_for
from smg_node.mcp.failures import Failure
from smg_node.mcp.tools.tool_result import CallResult

PAGE = "https://a.org/page"


def asked(
    url: Any = PAGE, settings: Any = None, properties: Any = None, *, name: str = "url"
) -> Any:
    schema = None if properties is None else {"type": "object", "properties": properties}
    given_ = json.dumps({name: url, "headers": {"x": "y"}})
    made = arguments_for("web_fetch", settings or {}, given_, schema=schema)
    return made if isinstance(made, Failure) else json.loads(made)


def fetched(result: CallResult, settings: Any = None, **limits: int) -> RunResult:
    return read_builtin("web_fetch", settings or {}, json.dumps({"url": PAGE}), result, **limits)


def object_of(**fields: Any) -> CallResult:
    return CallResult((), json.dumps(fields).encode())


def text(said: str) -> CallResult:
    return CallResult(({"type": "text", "text": said},))


# ── What is asked for ────────────────────────────────────────────────────────


def test_a_server_is_told_the_address_and_what_it_names_of_the_settings() -> None:
    assert asked() == {"url": PAGE}
    settings = {
        "type": "web_fetch_20250910",
        "allowed_domains": ["a.org"],
        "max_content_tokens": 10,
        "use_cache": False,
        "url_sources": {"type": "all"},
    }
    assert asked(settings=settings) == {"url": PAGE}
    named = {"url": {}, "allowed_domains": {}, "use_cache": {"type": "boolean"}, "url_sources": {}}
    told = asked(settings=settings, properties=named)
    assert told == {"url": PAGE, "allowed_domains": ["a.org"], "use_cache": False}


@pytest.mark.parametrize("name", ["uri", "link", "href", "address"])
def test_an_address_has_the_name_that_the_tool_gives_it(name: str) -> None:
    assert asked(properties={name: {"type": "string"}}) == {name: PAGE}
    assert asked(properties={"urls": {"type": "array"}}) == {"urls": [PAGE]}
    assert asked(properties={"urls": {}, "url": {}}) == {"url": PAGE}


def test_models_that_have_learnt_another_name_may_use_it() -> None:
    assert asked(name="id") == {"url": PAGE}


@pytest.mark.parametrize(
    ("url", "settings"),
    [
        ("https://b.org/", {"allowed_domains": ["a.org"]}),
        ("https://a.org@b.org/", {"allowed_domains": ["a.org"]}),
        ("https://a.org.b.org/", {"allowed_domains": ["a.org"]}),
        ("https://www.b.org/x", {"blocked_domains": ["b.org"]}),
        ("https://B.ORG./x", {"blocked_domains": ["b.org"]}),
        ("https://a.org/private/../x", {"allowed_domains": ["a.org/private"]}),
    ],
)
def test_a_domain_that_the_request_does_not_allow_is_not_asked_for(
    url: str, settings: dict[str, Any]
) -> None:
    found = asked(url, settings)
    assert isinstance(found, Failure)
    assert not found.sent
    assert found.message.startswith("url_not_allowed: ")


@pytest.mark.parametrize(
    "url", ["", "page", "file:///etc/passwd", "ftp://a.org/", "https://", 7, None, "javascript:1"]
)
def test_what_is_no_address_is_not_asked_for(url: Any) -> None:
    found = asked(url)
    assert isinstance(found, Failure)
    assert (found.code, found.sent) == (-32602, False)


def test_an_address_may_not_be_too_long() -> None:
    found = asked(PAGE + "x" * 3_000)
    assert isinstance(found, Failure)
    assert found.message.startswith("url_too_long: ")


# ── What came back ───────────────────────────────────────────────────────────


def test_a_page_has_its_text_its_title_and_its_address() -> None:
    page = object_of(url="https://a.org/final", title="A\npage", content="Cats.")
    result = fetched(page)
    assert result.text == "Cats."
    assert result.sources == (Source("https://a.org/final", "A page"),)
    assert result.action == {"url": PAGE}
    assert result.error is None
    for other in (
        {"page": {"uri": "https://a.org/final", "name": "A page", "markdown": "Cats."}},
        {"results": [{"url": "https://a.org/final", "title": "A page", "text": "Cats."}]},
        {"metadata": {"title": "A page", "url": "https://a.org/final"}, "markdown": "Cats."},
    ):
        found = fetched(object_of(**other))
        assert (found.text, found.sources) == (result.text, result.sources)
        written = fetched(text(json.dumps(other)))
        assert (written.text, written.sources) == (result.text, result.sources)


def test_a_text_is_the_page_at_the_address_that_was_asked_for() -> None:
    result = fetched(text("# Cats\nThey purr."))
    assert result.text == "# Cats\nThey purr."
    assert result.sources == (Source(PAGE),)
    assert fetched(text("")).text == "The page is empty."


def test_a_page_from_where_it_must_not_come_is_not_shown() -> None:
    page = object_of(final_url="https://b.org/x", text="secret")
    for settings in ({"allowed_domains": ["a.org"]}, {"blocked_domains": ["b.org"]}):
        result = fetched(page, settings)
        assert result.error is not None
        assert result.error.message.startswith("url_not_allowed: ")
        assert "secret" not in repr(result)
    assert fetched(page, {"allowed_domains": ["b.org"]}).text == "secret"


def test_a_page_is_cut_to_the_tokens_that_are_wanted() -> None:
    page = text("word " * 10_000)
    assert len(fetched(page, {"max_content_tokens": 100}).text) < 600
    assert len(fetched(page, {"max_content_tokens": 10**9}, bytes_max=2_000).text) < 2_200
    assert len(fetched(page, {"max_content_tokens": -1}, bytes_max=2_000).text) < 2_200


def test_a_failed_fetch_is_the_tools_own_error() -> None:
    result = fetched(CallResult(({"type": "text", "text": "404"},), is_error=True))
    assert result.error is not None
    assert result.error.type == "mcp_tool_execution_error"
    assert result.text == "404"


values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8) | st.just("https://b.org/"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["url", "title", "text", "result", "results", "metadata", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(values, st.booleans())
def test_whatever_a_server_answers_is_a_page_or_an_error(value: Any, structured: bool) -> None:
    said = json.dumps(value)
    result = fetched(
        CallResult((), said.encode()) if structured else text(said),
        {"blocked_domains": ["b.org"], "max_content_tokens": 100},
    )
    assert result.text
    for source in result.sources:
        assert "b.org" not in source.url
