"""Flat names of namespaced tools: readable where they can be, different always."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.dialects.responses.items.flat_names import FlatNames, NamespacedName, flat_names
from support.tools.example_counts import example_count

_VALID = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_parts = st.text(st.sampled_from("ab_-.é"), min_size=1, max_size=5) | st.sampled_from(
    ["a" * 64, "b" * 64, "a" * 128]
)


def only(namespace: str, name: str, *taken: str) -> str:
    (flat,) = flat_names([NamespacedName(namespace, name)], taken)
    return flat


@pytest.mark.parametrize(
    ("namespace", "name", "flat"),
    [
        ("crm", "lookup", "crm__lookup"),
        ("crm_", "lookup", "crm___lookup"),
        ("mcp__files__", "read", "mcp__files__read"),
        ("c" * 31, "f" * 31, "c" * 31 + "__" + "f" * 31),
    ],
)
def test_a_namespace_and_a_name_are_joined(namespace: str, name: str, flat: str) -> None:
    assert only(namespace, name) == flat
    assert FlatNames().of(namespace, name) == flat


@pytest.mark.parametrize(
    ("namespace", "name", "begins"),
    [
        ("c" * 32, "f" * 31, "c" * 22 + "__" + "f" * 31 + "_"),
        ("c" * 64, "f" * 64, "c" * 8 + "__" + "f" * 45 + "_"),
        ("acme.crm", "lookup", "acme_crm__lookup_"),
        ("größe", "x", "gr__e__x_"),
    ],
)
def test_what_no_name_can_be_ends_with_a_digest(namespace: str, name: str, begins: str) -> None:
    flat = only(namespace, name)
    assert flat.startswith(begins)
    assert re.fullmatch(r"[0-9a-f]{8}", flat.removeprefix(begins))
    assert FlatNames().of(namespace, name) == flat


def test_tools_that_would_be_called_the_same_are_told_apart() -> None:
    one, other = NamespacedName("a", "b__c"), NamespacedName("a__b", "c")
    names = flat_names([one, other], ["x"])
    assert list(names.values()) == [one, other]
    assert all(re.fullmatch(r"a__b__c_[0-9a-f]{8}", name) for name in names)


def test_a_plain_tool_keeps_its_name_whatever_a_namespace_has() -> None:
    digested = only("crm", "lookup", "crm__lookup")
    assert re.fullmatch(r"crm__lookup_[0-9a-f]{8}", digested)
    again = only("crm", "lookup", "crm__lookup", digested)
    assert again not in ("crm__lookup", digested)
    assert re.fullmatch(r"crm__lookup_[0-9a-f]{8}", again)


def test_a_history_uses_the_names_that_its_request_declares() -> None:
    declared = flat_names([NamespacedName("crm", "lookup")], ["crm__lookup", "free"])
    names = FlatNames(declared, [*declared, "crm__lookup", "free", "old__call"])
    assert names.of("crm", "lookup") == next(iter(declared)) != "crm__lookup"
    assert names.of("", "crm__lookup") == "crm__lookup"
    assert names.of("crm", "other") == "crm__other"
    assert re.fullmatch(r"old__call_[0-9a-f]{8}", names.of("old", "call"))


@settings(max_examples=example_count(200), deadline=None)
@given(
    tools=st.lists(st.builds(NamespacedName, _parts, _parts), unique=True, max_size=8),
    taken=st.lists(st.text(st.sampled_from("ab_"), min_size=1, max_size=12), max_size=8),
)
def test_flat_names_are_valid_and_all_differ(tools: list[NamespacedName], taken: list[str]) -> None:
    names = flat_names(tools, taken)
    assert list(names.values()) == tools
    assert all(_VALID.match(name) for name in names)
    assert not set(names) & set(taken)
    known = FlatNames(names, [*names, *taken])
    assert [known.of(*tool) for tool in tools] == list(names)
