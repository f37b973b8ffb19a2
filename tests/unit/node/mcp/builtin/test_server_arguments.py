"""Arguments for a server's tool: the model's with the request's settings over them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.generation.tool_serving import BuiltinKind
from smg_node.mcp.builtin.server_arguments import action_of, arguments_for
from smg_node.mcp.failures import INVALID_PARAMS, Failure


def told(
    kind: BuiltinKind, settings: dict[str, Any], arguments: str, schema: Any = None
) -> dict[str, Any]:
    text = arguments_for(kind, settings, arguments, schema=schema)
    assert isinstance(text, str), text
    values: dict[str, Any] = json.loads(text)
    return values


def test_settings_of_the_request_are_added_and_win() -> None:
    settings = {
        "type": "file_search",
        "vector_store_ids": ["vs_1"],
        "max_num_results": 3,
        "filters": {"type": "eq", "key": "year", "value": 2026},
        "ranking_options": None,
    }
    arguments = '{"queries": ["a"], "vector_store_ids": ["vs_of_another"], "type": "x"}'
    assert told("file_search", settings, arguments) == {
        "queries": ["a"],
        "vector_store_ids": ["vs_1"],
        "max_num_results": 3,
        "filters": {"type": "eq", "key": "year", "value": 2026},
    }


def test_what_is_about_the_api_is_no_argument() -> None:
    settings = {
        "type": "web_search_20250305",
        "name": "web_search",
        "max_uses": 3,
        "cache_control": {"type": "ephemeral"},
        "allowed_callers": ["direct"],
        "defer_loading": False,
        "strict": True,
        "user_location": {"type": "approximate", "city": "Bern"},
    }
    assert told("web_search", settings, '{"query": "x"}') == {
        "query": "x",
        "user_location": {"type": "approximate", "city": "Bern"},
    }


def test_domains_have_one_name_wherever_an_api_has_them() -> None:
    filters = {"allowed_domains": ["https://a.org"]}
    assert told("web_search", {"filters": filters}, '{"query": "x"}') == {
        "query": "x",
        "filters": filters,
        "allowed_domains": ["a.org"],
    }
    assert told("web_search", {"blocked_domains": ["b.org"]}, '{"query": "x"}') == {
        "query": "x",
        "blocked_domains": ["b.org"],
    }


def test_a_model_gives_what_it_was_offered_and_nothing_else() -> None:
    arguments = '{"code": "1", "container": "that of another", "n": 1e400}'
    assert arguments_for("code_interpreter", {}, arguments) == '{"code":"1"}'
    assert arguments_for("web_search", {}, '{"query": "\\u00fc", "n": 1}') == '{"query":"\\u00fc"}'


@pytest.mark.parametrize("arguments", ["", " \n", "{}"])
def test_no_arguments_are_an_empty_object(arguments: str) -> None:
    assert arguments_for("code_interpreter", {"container": "c1"}, arguments) == '{"container":"c1"}'


@pytest.mark.parametrize("arguments", ["[1]", "{", "nothing", '"text"', "3", '{"a":1}x', "\ud800"])
def test_what_is_no_object_is_not_sent(arguments: str) -> None:
    failure = arguments_for("web_search", {}, arguments)
    assert isinstance(failure, Failure)
    assert failure.code == INVALID_PARAMS
    assert not failure.sent


CLOSED = {"type": "object", "properties": {"query": {}}, "additionalProperties": False}
OPEN = {"type": "object", "properties": {"query": {}}}


def test_a_tool_that_takes_only_what_it_names_gets_that() -> None:
    settings = {"search_context_size": "low", "user_location": {"city": "Bern"}}
    assert told("web_search", settings, '{"query": "x"}', CLOSED) == {"query": "x"}
    assert told("web_search", settings, '{"query": "x"}', OPEN) == {"query": "x"} | settings


def test_a_setting_of_another_type_than_a_tool_takes_is_left_out() -> None:
    schema: Any = {"properties": {"code": {}, "container": {"type": "string"}, "n": {"type": []}}}
    automatic = {"type": "code_interpreter", "container": {"type": "auto"}}
    assert told("code_interpreter", automatic, '{"code": "1"}', schema) == {"code": "1"}
    named = {"container": "cntr_1", "n": 3}
    assert told("code_interpreter", named, '{"code": "1"}', schema) == {"code": "1"} | named
    assert told("code_interpreter", automatic, '{"code": "1"}') == {
        "code": "1",
        "container": {"type": "auto"},
    }


@pytest.mark.parametrize("schema", [CLOSED, OPEN])
def test_a_tool_that_knows_one_query_gets_one(schema: Any) -> None:
    assert told("file_search", {}, '{"queries": ["a b", "c"]}', schema) == {"query": "a b c"}
    assert told("file_search", {}, '{"query": "a"}', schema) == {"query": "a"}


def test_a_tool_that_knows_queries_gets_a_list() -> None:
    schema: dict[str, Any] = {"properties": {"queries": {}}}
    assert told("web_search", {}, '{"query": "a"}', schema) == {"queries": ["a"]}
    both: dict[str, Any] = {"properties": {"queries": {}, "query": {}}}
    assert told("web_search", {}, '{"query": "a"}', both) == {"query": "a"}


@pytest.mark.parametrize(
    ("kind", "arguments", "action"),
    [
        ("web_search", '{"query": "x", "n": 1}', {"query": "x"}),
        ("web_search", "{", {"query": ""}),
        ("web_search", '{"query": 3}', {"query": ""}),
        ("file_search", '{"queries": ["a", 3, "b"]}', {"queries": ["a", "b"]}),
        ("file_search", '{"queries": "a"}', {"queries": ["a"]}),
        ("file_search", '{"query": "a"}', {"queries": ["a"]}),
        ("file_search", "{}", {"queries": []}),
        ("code_interpreter", '{"code": "1"}', {"code": "1"}),
        ("image_generation", '{"prompt": "a cat"}', {"prompt": "a cat"}),
        ("tool_search", '{"query": "mail"}', {"query": "mail"}),
        ("tool_search", '{"pattern": "mail"}', {"pattern": "mail"}),
    ],
)
def test_what_a_call_asks_for(kind: BuiltinKind, arguments: str, action: Any) -> None:
    assert action_of(kind, arguments) == action


@given(st.text(max_size=60))
def test_any_text_gives_arguments_or_a_failure(arguments: str) -> None:
    text = arguments_for("web_search", {"filters": {}}, arguments)
    assert isinstance(text, Failure) or isinstance(json.loads(text), dict)
    assert isinstance(action_of("file_search", arguments)["queries"], list)
