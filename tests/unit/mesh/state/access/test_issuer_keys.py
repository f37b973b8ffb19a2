"""Issuer keys: sets of any size are whole or as they were before, on every node and in every order."""

from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_mesh.state.access.access_records import Denial, IssuerKeySet
from smg_mesh.state.access.access_state import AccessState
from smg_mesh.state.access.issuer_keys import (
    SET_BYTES_MAX,
    SOURCES_MAX,
    UNUSED_MS,
    IssuerKeys,
)
from support.state.fake_namespace import EPOCH_MS, FakeNamespaces

NOW = EPOCH_MS
SSO = "https://sso.example"
ELSEWHERE = "https://sso.example https://mirror.example/keys"


def keys(
    document: bytes, *, fetched: int = NOW, alias: str = "corp", source: str = SSO
) -> IssuerKeySet:
    return IssuerKeySet(alias, document, fetched, 300_000, source, "a")


def place(source: str = SSO, alias: str = "corp") -> str:
    return f"{alias}/{blake2b(source.encode(), digest_size=8).hexdigest()}"


def test_a_small_set_is_one_entry_and_known_everywhere() -> None:
    world = FakeNamespaces("a", "b", name="access")
    here, there = IssuerKeys(world["a"]), IssuerKeys(world["b"])
    heard: list[str] = []
    there.watch(heard.extend)
    here.put(keys(b'{"keys":[]}'))
    assert there.get("corp", SSO) == keys(b'{"keys":[]}')
    assert (there.aliases(), heard, world["a"].writes) == (["corp"], ["corp"], 1)


def test_the_largest_set_is_cut_and_a_smaller_one_takes_its_parts_away() -> None:
    world = FakeNamespaces("a", "b", name="access")
    here, there = IssuerKeys(world["a"]), IssuerKeys(world["b"])
    large = bytes(range(256)) * (SET_BYTES_MAX // 256)
    here.put(keys(large))
    assert there.get("corp", SSO) == keys(large)
    assert len(world["b"].items()) == 5
    there.put(keys(b"{}", fetched=NOW + 1))
    assert here.get("corp", SSO) == keys(b"{}", fetched=NOW + 1)
    assert len(world["a"].items()) == 1
    here.remove("corp")
    assert there.get("corp", SSO) is None
    assert len(world["b"].items()) == 0


def test_the_same_keys_fetched_again_write_no_part_again() -> None:
    world = FakeNamespaces("a", name="access")
    view = IssuerKeys(world["a"])
    view.put(keys(b"x" * 40_000))
    writes = world["a"].writes
    view.put(keys(b"x" * 40_000, fetched=NOW + 9))
    assert world["a"].writes == writes + 1
    found = view.get("corp", SSO)
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
    assert view.get("corp", SSO) == keys(b"{}")


def test_a_set_survives_a_restart() -> None:
    world = FakeNamespaces("a", name="access")
    IssuerKeys(world["a"]).put(keys(b"y" * 30_000))
    again = IssuerKeys(world.restart("a"))
    assert again.get("corp", SSO) == keys(b"y" * 30_000)


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
        assert reader.get("corp", SSO) in (None, *written)
    for held in world["a"].items():
        assert held.value is not None
        other["b"].put(held.key, held.value)
    assert reader.get("corp", SSO) == written[-1]


@given(st.binary(max_size=200))
def test_garbage_is_no_set_and_spoils_none(content: bytes) -> None:
    world = FakeNamespaces("a", name="access")
    view = IssuerKeys(world["a"])
    view.put(keys(b"{}"))
    world["a"].put(f"set/{place()}", content)
    world["a"].put("set/corp", content)
    world["a"].put("set/corp/0/1/2", content)
    world["a"].put("set/other", content)
    world["a"].put("set/", content)
    world["a"].put(f"part/{place()}/1", content)
    world["a"].put("part/", content)
    world["a"].put("deny", content)
    assert view.get("corp", SSO) == keys(b"{}")
    assert view.get("other", SSO) is None


def test_sets_of_one_alias_from_different_sources_do_not_write_over_each_other() -> None:
    world = FakeNamespaces("a", "b", name="access")
    here, there = IssuerKeys(world["a"]), IssuerKeys(world["b"])
    first, second = keys(b"1" * 40_000), keys(b"2" * 20_000, source=ELSEWHERE)
    here.put(first)
    there.put(second)
    here.put(keys(b"1" * 40_000, fetched=NOW + 9))
    for view in (here, there):
        assert view.get("corp", SSO) == keys(b"1" * 40_000, fetched=NOW + 9)
        assert view.get("corp", ELSEWHERE) == second
        assert view.get("corp", "https://other.example") is None
        assert (view.aliases(), view.sources("corp")) == (["corp"], [SSO, ELSEWHERE])
    here.remove("corp")
    assert (there.aliases(), world["b"].items()) == ([], [])


def test_a_source_of_any_length_is_told_from_others() -> None:
    world = FakeNamespaces("a", name="access")
    view = IssuerKeys(world["a"])
    long = "https://sso.example/" + "x" * 2_000
    view.put(keys(b"1", source=long + "1"))
    view.put(keys(b"2", source=long + "2"))
    found = [view.get("corp", long + end) for end in "123"]
    assert [None if one is None else one.document for one in found] == [b"1", b"2", None]


def test_a_set_of_an_earlier_build_counts_for_its_source_until_a_newer_one_is_there() -> None:
    world = FakeNamespaces("a", "b", name="access")
    here, there = IssuerKeys(world["a"]), IssuerKeys(world["b"])
    here.put(keys(b"old"))
    entry = world["a"].get(f"set/{place()}")
    assert entry is not None
    assert entry.value is not None
    here.remove("corp")
    world["a"].put("set/corp", entry.value)
    assert there.get("corp", SSO) == keys(b"old")
    assert there.get("corp", ELSEWHERE) is None
    there.put(keys(b"new", fetched=NOW + 1))
    assert here.get("corp", SSO) == keys(b"new", fetched=NOW + 1)
    here.remove("corp")
    assert (there.get("corp", SSO), len(world["b"].items())) == (None, 0)


def test_what_nobody_fetches_any_more_is_removed_with_the_next_write() -> None:
    world = FakeNamespaces("a", name="access")
    view = IssuerKeys(world["a"])
    view.put(keys(b"x" * 20_000))
    view.put(keys(b"{}", source=ELSEWHERE, fetched=NOW + UNUSED_MS))
    assert view.sources("corp") == [SSO, ELSEWHERE]
    view.put(keys(b"{}", source=ELSEWHERE, fetched=NOW + UNUSED_MS + 1))
    assert view.sources("corp") == [ELSEWHERE]
    assert len(world["a"].items()) == 1


def test_sources_of_one_alias_are_bounded_and_the_oldest_makes_room() -> None:
    world = FakeNamespaces("a", name="access")
    view = IssuerKeys(world["a"])
    for at in range(SOURCES_MAX + 3):
        view.put(keys(b"{}", source=f"https://sso.example/{at:02}", fetched=NOW + at))
    view.put(keys(b"{}", alias="other"))
    kept = [f"https://sso.example/{at:02}" for at in range(3, SOURCES_MAX + 3)]
    assert view.sources("corp") == kept
    assert view.aliases() == ["corp", "other"]


def test_keys_and_denials_lie_beside_each_other() -> None:
    world = FakeNamespaces("a", "b", name="access")
    here, there = AccessState(world["a"]), AccessState(world["b"])
    here.keys.put(keys(b"{}"))
    here.denials.put(Denial("corp", "alice", NOW + 5), wall_ms=NOW)
    assert there.keys.aliases() == ["corp"]
    assert [one.subject for one in there.denials.all()] == ["alice"]
