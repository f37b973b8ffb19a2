"""Denials: refused on all nodes until their end, and gone when an operator takes them back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_mesh.crdt.namespace import StateError
from smg_mesh.state.access import denials
from smg_mesh.state.access.access_records import Denial
from smg_mesh.state.access.denials import Denials
from support.state.fake_namespace import EPOCH_MS, FakeNamespaces

NOW = EPOCH_MS
DAY = 86_400_000


def denial(subject: str = "alice", *, before: int = 0, until: int = NOW + DAY) -> Denial:
    return Denial("corp", subject, until, before, NOW)


def test_a_denied_subject_is_denied_everywhere_until_it_is_taken_back() -> None:
    world = FakeNamespaces("a", "b", name="access")
    here, there = Denials(world["a"]), Denials(world["b"])
    heard: list[str] = []
    there.watch(heard.extend)
    here.put(denial(), wall_ms=NOW)
    assert there.get("corp", "alice") == denial()
    assert there.get("other", "alice") is None
    assert there.remove("corp", "alice") == denial()
    assert (here.get("corp", "alice"), len(here), heard) == (None, 0, ["corp", "corp"])
    with pytest.raises(LookupError):
        here.remove("corp", "alice")


def test_a_denial_refuses_until_its_end() -> None:
    assert denial().refuses(NOW, NOW + DAY - 1)
    assert not denial().refuses(NOW, NOW + DAY)


def test_with_a_time_only_tokens_issued_before_it_are_refused() -> None:
    since = denial(before=NOW)
    assert since.refuses(NOW - 1, NOW)
    assert not since.refuses(NOW, NOW)
    assert since.refuses(0, NOW), "a token that does not say when it was issued"


def test_saying_it_again_replaces_it() -> None:
    world = FakeNamespaces("a", name="access")
    view = Denials(world["a"])
    view.put(denial(), wall_ms=NOW)
    view.put(denial(before=NOW - 5, until=NOW + 9), wall_ms=NOW)
    assert view.all() == [denial(before=NOW - 5, until=NOW + 9)]


@pytest.mark.parametrize("wrong", [denial(""), denial("x" * 1_025), Denial("a/b", "x", NOW)])
def test_what_no_node_would_read_is_not_written(wrong: Denial) -> None:
    world = FakeNamespaces("a", name="access")
    with pytest.raises(ValueError, match=r"name of an issuer|length"):
        Denials(world["a"]).put(wrong, wall_ms=NOW)
    assert world["a"].writes == 0


def test_those_that_are_over_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(denials, "DENIALS_MAX", 2)
    view = Denials(FakeNamespaces("a", name="access")["a"])
    view.put(denial("a", until=NOW + 1), wall_ms=NOW)
    view.put(denial("b"), wall_ms=NOW)
    with pytest.raises(StateError, match="no more fit"):
        view.put(denial("c"), wall_ms=NOW)
    view.put(denial("b", before=NOW), wall_ms=NOW)
    view.put(denial("c"), wall_ms=NOW + 1)
    assert [one.subject for one in view.all()] == ["b", "c"]


@given(st.binary(max_size=100))
def test_garbage_denies_nobody_and_is_listed(content: bytes) -> None:
    world = FakeNamespaces("a", name="access")
    view = Denials(world["a"])
    world["a"].put("deny/corp/00", content)
    assert view.all() == []
    assert [one.key for one in view.unreadable()] == ["deny/corp/00"]


@given(st.text(min_size=1, max_size=255))
def test_any_name_a_subject_has_is_found_again(subject: str) -> None:
    view = Denials(FakeNamespaces("a", name="access")["a"])
    try:
        view.put(denial(subject), wall_ms=NOW)
    except ValueError:
        assert not subject.isascii(), "only what UTF-8 cannot say"
        return
    assert view.get("corp", subject) == denial(subject)
