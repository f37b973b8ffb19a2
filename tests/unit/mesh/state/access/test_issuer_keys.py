"""Issuer keys: sets of any size are whole or as they were before, on every node and in every order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_mesh.state.access.access_records import Denial, IssuerKeySet
from smg_mesh.state.access.access_state import AccessState
from smg_mesh.state.access.issuer_keys import SET_BYTES_MAX, IssuerKeys
from support.state.fake_namespace import EPOCH_MS, FakeNamespaces

NOW = EPOCH_MS


def keys(document: bytes, *, fetched: int = NOW, alias: str = "corp") -> IssuerKeySet:
    return IssuerKeySet(alias, document, fetched, 300_000, "https://sso.example", "a")


def test_a_small_set_is_one_entry_and_known_everywhere() -> None:
    world = FakeNamespaces("a", "b", name="access")
    here, there = IssuerKeys(world["a"]), IssuerKeys(world["b"])
    heard: list[str] = []
    there.watch(heard.extend)
    here.put(keys(b'{"keys":[]}'))
    assert there.get("corp") == keys(b'{"keys":[]}')
    assert (there.aliases(), heard, world["a"].writes) == (["corp"], ["corp"], 1)


def test_the_largest_set_is_cut_and_a_smaller_one_takes_its_parts_away() -> None:
    world = FakeNamespaces("a", "b", name="access")
    here, there = IssuerKeys(world["a"]), IssuerKeys(world["b"])
    large = bytes(range(256)) * (SET_BYTES_MAX // 256)
    here.put(keys(large))
    assert there.get("corp") == keys(large)
    assert len(world["b"].items()) == 5
    there.put(keys(b"{}", fetched=NOW + 1))
    assert here.get("corp") == keys(b"{}", fetched=NOW + 1)
    assert len(world["a"].items()) == 1
    here.remove("corp")
    assert there.get("corp") is None
    assert len(world["b"].items()) == 0


def test_the_same_keys_fetched_again_write_no_part_again() -> None:
    world = FakeNamespaces("a", name="access")
    view = IssuerKeys(world["a"])
    view.put(keys(b"x" * 40_000))
    writes = world["a"].writes
    view.put(keys(b"x" * 40_000, fetched=NOW + 9))
    assert world["a"].writes == writes + 1
    found = view.get("corp")
    assert found is not None
    assert found.fetched_ms == NOW + 9


@pytest.mark.parametrize("alias", ["", "a/b", "x" * 64])
def test_no_alias_makes_no_entry(alias: str) -> None:
    world = FakeNamespaces("a", name="access")
    with pytest.raises(ValueError, match="no name of an issuer"):
        IssuerKeys(world["a"]).put(keys(b"{}", alias=alias))
    assert world["a"].writes == 0


def test_a_set_that_is_too_large_is_refused_and_the_one_before_stays() -> None:
    world = FakeNamespaces("a", name="access")
    view = IssuerKeys(world["a"])
    view.put(keys(b"{}"))
    with pytest.raises(ValueError, match="at most 65536"):
        view.put(keys(b"x" * (SET_BYTES_MAX + 1)))
    assert view.get("corp") == keys(b"{}")


def test_a_set_survives_a_restart() -> None:
    world = FakeNamespaces("a", name="access")
    IssuerKeys(world["a"]).put(keys(b"y" * 30_000))
    again = IssuerKeys(world.restart("a"))
    assert again.get("corp") == keys(b"y" * 30_000)


@given(
    st.lists(st.integers(1, 4), min_size=2, max_size=4),
    st.randoms(use_true_random=False),
)
def test_whatever_arrives_in_whatever_order_a_set_is_one_that_was_written(
    sizes: list[int], chance: "object"
) -> None:
    world = FakeNamespaces("a", name="access")
    writer = IssuerKeys(world["a"])
    written = [
        keys(bytes([48 + at]) * (size * 15_000), fetched=NOW + at) for at, size in enumerate(sizes)
    ]
    entries = []
    for one in written:
        writer.put(one)
        entries += [(held.key, held.value) for held in world["a"].items()]
    chance.shuffle(entries)  # type: ignore[attr-defined]  # a Random
    other = FakeNamespaces("b", name="access")
    reader = IssuerKeys(other["b"])
    for key, value in entries:
        assert value is not None
        other["b"].put(key, value)
        assert reader.get("corp") in (None, *written)
    for held in world["a"].items():
        assert held.value is not None
        other["b"].put(held.key, held.value)
    assert reader.get("corp") == written[-1]


@given(st.binary(max_size=200))
def test_garbage_is_no_set_and_spoils_none(content: bytes) -> None:
    world = FakeNamespaces("a", name="access")
    view = IssuerKeys(world["a"])
    view.put(keys(b"{}"))
    world["a"].put("set/corp", content)
    world["a"].put("set/other", content)
    world["a"].put("part/corp/1", content)
    world["a"].put("deny", content)
    assert view.get("corp") == keys(b"{}")
    assert view.get("other") is None


def test_keys_and_denials_lie_beside_each_other() -> None:
    world = FakeNamespaces("a", "b", name="access")
    here, there = AccessState(world["a"]), AccessState(world["b"])
    here.keys.put(keys(b"{}"))
    here.denials.put(Denial("corp", "alice", NOW + 5), wall_ms=NOW)
    assert there.keys.aliases() == ["corp"]
    assert [one.subject for one in there.denials.all()] == ["alice"]
