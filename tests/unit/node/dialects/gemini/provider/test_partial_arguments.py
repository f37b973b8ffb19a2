"""Pieces of arguments are joined by their paths, and a piece that belongs nowhere is an error."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.dialects.gemini.provider.partial_arguments import PATH_MAX, PartialArguments
from support.tools.example_counts import example_count


def at(path: str, *, more: bool = False, **value: Any) -> dict[str, Any]:
    return {"jsonPath": path, **value, **({"willContinue": True} if more else {})}


def joined(*pieces: dict[str, Any], begun: dict[str, Any] | None = None) -> dict[str, Any]:
    arguments = PartialArguments(begun or {})
    for piece in pieces:
        arguments.take(piece)
    return arguments.joined


@pytest.mark.parametrize(
    ("pieces", "arguments"),
    [
        ([at("$.a", stringValue="x")], {"a": "x"}),
        ([at("$.a", stringValue="x", more=True), at("$.a", stringValue="y")], {"a": "xy"}),
        ([at("$.a", more=True), at("$.a", stringValue="y", more=True), at("$.a")], {"a": "y"}),
        ([at("$.a", stringValue="x"), at("$.a", stringValue="y")], {"a": "y"}),
        ([at("$.a", stringValue="x", more=True), at("$.b", boolValue=False)], {"a": "x", "b": False}),
        ([at("$.a.b.c", numberValue=1.5)], {"a": {"b": {"c": 1.5}}}),
        ([at("$.a[0].b", numberValue=1), at("$.a[1].b", numberValue=2)], {"a": [{"b": 1}, {"b": 2}]}),
        ([at("$.a[0]", stringValue="x", more=True), at("$.a[0]", stringValue="y")], {"a": ["xy"]}),
        ([at("$['it\\'s']", nullValue="NULL_VALUE")], {"it's": None}),
        ([at('$["\\u00e9\\n"].x', stringValue="")], {"é\n": {"x": ""}}),
        ([at("$['\\ud83d\\ude00']", boolValue=True)], {"😀": True}),
        ([at("$['\\ud83d']", boolValue=True)], {"\ufffd": True}),
        ([at("$.a")], {}),
        ([], {}),
    ],
)  # fmt: skip
def test_pieces_are_joined(pieces: list[dict[str, Any]], arguments: dict[str, Any]) -> None:
    assert joined(*pieces) == arguments


def test_what_came_whole_stays() -> None:
    begun = {"a": 1}
    assert joined(at("$.b", stringValue="x"), begun=begun) == {"a": 1, "b": "x"}
    assert begun == {"a": 1}


@pytest.mark.parametrize(
    "pieces",
    [
        [{"stringValue": "x"}],
        [at("", stringValue="x")],
        [at("$", stringValue="x")],
        [at("a", stringValue="x")],
        [at("$.", stringValue="x")],
        [at("$..a", stringValue="x")],
        [at("$[*]", stringValue="x")],
        [at("$[0]", stringValue="x")],
        [at("$.a[1]", stringValue="x")],
        [at("$.a", stringValue="x"), at("$.a.b", stringValue="x")],
        [at("$.a[0]", stringValue="x"), at("$.a.b", stringValue="x")],
        [at("$.a", stringValue={})],
        [at("$" + ".a" * (PATH_MAX // 2), stringValue="x")],
    ],
)
def test_what_belongs_nowhere_is_an_error(pieces: list[dict[str, Any]]) -> None:
    with pytest.raises(SmgError) as caught:
        joined(*pieces)
    assert caught.value.message == "the vendor sent a piece of arguments that belongs nowhere"


NAMES = st.text(st.characters(codec="utf-8"), max_size=4)
OBJECTS = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | NAMES,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        | st.dictionaries(NAMES, inner, min_size=1, max_size=3)
    ),
    max_leaves=8,
)


def pieces_of(value: Any, path: str, data: st.DataObject) -> list[dict[str, Any]]:
    """Return an object as its pieces, with texts cut anywhere."""
    if isinstance(value, dict):
        pairs = [(f"{path}[{json.dumps(name)}]", inner) for name, inner in value.items()]
        return [piece for at, inner in pairs for piece in pieces_of(inner, at, data)]
    if isinstance(value, list):
        places = [(f"{path}[{index}]", inner) for index, inner in enumerate(value)]
        return [piece for at, inner in places for piece in pieces_of(inner, at, data)]
    if isinstance(value, str):
        cut = data.draw(st.integers(0, len(value)))
        halves = at(path, stringValue=value[:cut], more=True), at(path, stringValue=value[cut:])
        return list(halves)
    if value is None:
        return [at(path, nullValue="NULL_VALUE")]
    return [at(path, **({"boolValue": value} if value is True or value is False else {"numberValue": value}))]  # fmt: skip


@settings(max_examples=example_count(150))
@given(st.data(), st.dictionaries(NAMES, OBJECTS, max_size=3))
def test_the_pieces_of_an_object_make_it_again(data: st.DataObject, whole: dict[str, Any]) -> None:
    assert joined(*pieces_of(whole, "$", data)) == whole


@settings(max_examples=example_count(200))
@given(st.lists(st.tuples(st.text("$.[]'\"\\u09a*", max_size=8), NAMES, st.booleans()), max_size=4))
def test_paths_of_any_kind_join_or_are_an_error(pieces: list[tuple[str, str, bool]]) -> None:
    try:
        found = joined(
            *(at("$" + path, stringValue=said, more=more) for path, said, more in pieces)
        )
    except SmgError:
        return
    assert isinstance(json.loads(json.dumps(found)), dict)
