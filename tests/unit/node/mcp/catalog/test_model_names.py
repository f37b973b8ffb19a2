"""Model names: valid, unique, and the same whatever the order."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.mcp.catalog.model_names import Named, model_names

_VALID = re.compile(r"[A-Za-z0-9_-]{1,64}")
labels = st.text("ab_-", min_size=1, max_size=3)
tool_names = st.text("ab_-. /é", min_size=1, max_size=80) | st.sampled_from(["a", "b", "a__b"])
many = st.lists(st.builds(Named, labels, tool_names, st.sampled_from(["", "", "a", "x y"])))


@pytest.mark.parametrize(
    ("tools", "taken", "names"),
    [
        ([Named("fs", "read")], (), ["read"]),
        ([Named("fs", "read")], ("read",), ["fs__read"]),
        ([Named("a", "read"), Named("b", "read")], (), ["a__read", "b__read"]),
        ([Named("fs", "read", "open_file")], (), ["open_file"]),
        ([Named("fs", "read", "open file")], (), ["read"]),
        ([Named("fs", "read"), Named("b", "fs__read")], ("read",), [None, "fs__read"]),
    ],
)
def test_a_tool_has_its_own_name_or_one_with_its_label(
    tools: list[Named], taken: tuple[str, ...], names: list[str | None]
) -> None:
    found = model_names(tools, taken)
    for tool, name in zip(tools, names, strict=True):
        assert name is None or found[tool] == name


def test_what_is_no_name_is_cut_and_has_six_digits() -> None:
    tool = Named("fs", "files/read" + "x" * 80)
    name = model_names([tool], ())[tool]
    assert re.fullmatch(r"files_readx+_[0-9a-f]{6}", name)
    assert len(name) == 64


@given(many, st.sets(st.sampled_from(["a", "b", "a__a", "a__b"])))
def test_names_are_valid_and_unique(tools: list[Named], taken: set[str]) -> None:
    names = model_names(tools, taken)
    assert set(names) == set(tools)
    assert all(_VALID.fullmatch(name) for name in names.values())
    assert len(set(names.values())) == len(names)
    assert not taken & set(names.values())


@given(many, st.randoms())
def test_the_order_of_tools_decides_nothing(tools: list[Named], chance: "object") -> None:
    shuffled = list(tools)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]  # a `random.Random`
    assert model_names(shuffled, ()) == model_names(tools, ())
