"""Pointers lead into claims whatever their names are made of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.access.tokens.json_pointer import MISSING, pointed, pointer_names

CLAIMS = {
    "realm_access": {"roles": ["a", "b"]},
    "kubernetes.io": {"namespace": "prod"},
    "https://example.com/roles": "x y",
    "a~b": {"": 0},
    "none": None,
}


@pytest.mark.parametrize(
    ("pointer", "found"),
    [
        ("/realm_access/roles", ["a", "b"]),
        ("/realm_access/roles/1", "b"),
        ("/realm_access/roles/2", MISSING),
        ("/realm_access/roles/-", MISSING),
        ("/realm_access/roles/01", MISSING),
        ("/realm_access/roles/9999", MISSING),
        ("/realm_access/roles/a", MISSING),
        ("/kubernetes.io/namespace", "prod"),
        ("/https:~1~1example.com~1roles", "x y"),
        ("/https:~1~1example.com~1roles/0", MISSING),
        ("/a~0b/", 0),
        ("/none", None),
        ("/none/deeper", MISSING),
        ("/absent", MISSING),
        ("/", MISSING),
    ],
)
def test_a_pointer_finds_what_is_there(pointer: str, found: object) -> None:
    assert pointed(CLAIMS, pointer_names(pointer)) == found


@pytest.mark.parametrize("text", ["", "roles", "roles/a", "/a~", "/a~2b", "#/a", "$.a"])
def test_other_texts_are_no_pointers(text: str) -> None:
    with pytest.raises(ValueError, match="is not a JSON Pointer"):
        pointer_names(text)


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_any_names_are_found_again(names: list[str]) -> None:
    pointer = "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in names)
    assert pointer_names(pointer) == tuple(names)
    claims: object = "here"
    for name in reversed(names):
        claims = {name: claims}
    assert isinstance(claims, dict)
    assert pointed(claims, names) == "here"
