"""Access definitions: written by version, known on all nodes, and passed on where they cannot be read."""

import pytest

from smg_mesh.crdt.namespace import StateError
from smg_mesh.state.access.access_definitions import AccessDefinitions
from support.state.fake_namespace import FakeNamespaces

SPEC = {"issuer": "https://sso.example", "audiences": ["smg"]}


def test_a_definition_is_known_everywhere_and_changed_by_version() -> None:
    world = FakeNamespaces("a", "b", name="access")
    here, there = AccessDefinitions(world["a"], "issuer"), AccessDefinitions(world["b"], "issuer")
    heard: list[str] = []
    there.watch(heard.extend)
    made = here.set("corp", SPEC, version=0)
    assert there.get("corp") == made
    assert (made.value, made.owner, heard) == (SPEC, "a", ["corp"])
    with pytest.raises(StateError, match="changed"):
        there.set("corp", SPEC, version=0)
    again = there.set("corp", {**SPEC, "leeway_s": 5.0}, version=made.version)
    assert here.all() == [again]
    here.remove("corp", version=again.version)
    assert (there.get("corp"), there.all()) == (None, [])


def test_other_entries_of_the_namespace_are_none_of_them() -> None:
    world = FakeNamespaces("a", name="access")
    view = AccessDefinitions(world["a"], "issuer")
    heard: list[str] = []
    view.watch(heard.extend)
    world["a"].put("set/corp", b"x")
    world["a"].put("deny/corp/1", b"x")
    AccessDefinitions(world["a"], "role").set("corp", ["look"], version=0)
    assert (view.all(), heard) == ([], [])


def test_what_cannot_be_read_has_no_value() -> None:
    world = FakeNamespaces("a", name="access")
    world["a"].put("issuer/corp", b"\xc1")
    (found,) = AccessDefinitions(world["a"], "issuer").all()
    assert (found.alias, found.value) == ("corp", None)


@pytest.mark.parametrize("alias", ["", "a/b"])
def test_no_name_makes_no_entry(alias: str) -> None:
    world = FakeNamespaces("a", name="access")
    with pytest.raises(ValueError, match=r"no name of such a definition \(role\)"):
        AccessDefinitions(world["a"], "role").set(alias, SPEC, version=None)
    assert world["a"].writes == 0
