"""Settings: one value per key on all nodes, and no write lost without being seen."""

import msgspec
import pytest

from smg_mesh.crdt.namespace import StateError
from smg_mesh.state.json_value import Json
from smg_mesh.state.settings import SettingsView, SettingValue
from support.state.fake_namespace import EPOCH_MS, FakeNamespaces


class Views:
    """The settings as each of three nodes sees them."""

    def __init__(self) -> None:
        self.world = FakeNamespaces("a", "b", "c", name="settings")
        self._views = {name: SettingsView(self.world[name], name) for name in "abc"}

    def __getitem__(self, name: str) -> SettingsView:
        return self._views[name]

    def value(self, name: str, key: str = "k") -> Json:
        found = self[name].get(key)
        assert found is not None
        return found.value


@pytest.fixture
def views() -> Views:
    return Views()


@pytest.mark.parametrize(
    "value",
    [None, True, 0, -(1 << 63), (1 << 64) - 1, 1.5, "", "ü", [], {}, [1, [2, {"a": None}]]],
)
def test_what_json_can_say_comes_back_on_every_node(views: Views, value: Json) -> None:
    said = views["a"].set("k", value, version=0)
    assert said.value == value
    assert (said.owner, said.time_ms, said.conflicts) == ("a", EPOCH_MS, ())
    assert views["b"].get("k") == views["c"].get("k") == said
    assert views["b"].all() == [said]


@pytest.mark.parametrize(
    "value",
    [
        b"x",
        float("nan"),
        float("inf"),
        1 << 64,
        -(1 << 63) - 1,
        {1: 2},
        (1,),
        object(),
        "\ud800",
        {"a": [{"b": {3}}]},
    ],
)
def test_what_json_cannot_say_is_refused(views: Views, value: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # each says something else
        views["a"].set("k", value, version=None)
    assert views.world["a"].writes == 0


def test_nesting_has_a_limit(views: Views) -> None:
    value: Json = 0
    for _ in range(31):
        value = [value]
    assert views["a"].set("k", value, version=None).value == value
    with pytest.raises(ValueError, match="nested"):
        views["a"].set("k", {"deeper": value}, version=None)


def test_a_value_has_a_size_limit(views: Views) -> None:
    views["a"].set("k", "x" * 16_000, version=None)
    with pytest.raises(StateError) as refused:
        views["a"].set("k", "x" * 17_000, version=None)
    assert refused.value.reason == "too_large"
    with pytest.raises(StateError) as refused:
        views["a"].set("k" * 300, 1, version=None)
    assert refused.value.reason == "too_large"


def test_a_write_that_knows_another_version_is_refused_and_told_what_is_there(
    views: Views,
) -> None:
    first = views["a"].set("k", 1, version=0)
    second = views["b"].set("k", 2, version=first.version)
    for version in (0, first.version):
        with pytest.raises(StateError) as refused:
            views["c"].set("k", 3, version=version)
        assert refused.value.reason == "stale"
        assert refused.value.current is not None
        assert refused.value.current.version == second.version
        with pytest.raises(StateError):
            views["c"].remove("k", version=version)
    assert views.value("a") == 2
    assert views["c"].set("k", 3, version=None).value == 3


def test_a_removal_is_everywhere_and_leaves_no_value(views: Views) -> None:
    said = views["a"].set("k", 1, version=0)
    views["b"].remove("k", version=said.version)
    for name in "abc":
        assert views[name].get("k") is None
        assert views[name].all() == []
        assert len(views[name]) == 0
    assert views["c"].set("k", 2, version=0).value == 2


def test_two_writes_that_did_not_know_of_each_other_are_both_shown(views: Views) -> None:
    views["a"].set("k", "old", version=0)
    views.world.cut(("a",), ("b", "c"))
    lost = views["a"].set("k", "from a", version=None)
    views.world.advance(5)
    won = views["b"].set("k", "from b", version=None)
    assert lost.conflicts == won.conflicts == ()
    views.world.heal()
    for name in "abc":
        shown = views[name].get("k")
        assert shown is not None
        assert shown.value == "from b"
        assert shown.conflicts == (lost,)
        assert views[name].conflicts("k") == (lost,)


def test_a_conflict_ends_when_somebody_writes_having_seen_both(views: Views) -> None:
    views.world.cut(("a",), ("b", "c"))
    views["a"].set("k", 1, version=None)
    views.world.advance(5)
    views["b"].set("k", 2, version=None)
    views.world.heal()
    shown = views["c"].get("k")
    assert shown is not None
    settled = views["c"].set("k", 3, version=shown.version)
    for name in "abc":
        assert views[name].get("k") == settled
        assert views[name].conflicts("k") == ()


def test_a_write_against_a_removal_shows_the_removal(views: Views) -> None:
    views["a"].set("k", "old", version=0)
    views.world.cut(("a",), ("b", "c"))
    views["a"].remove("k", version=None)
    views.world.advance(5)
    views["b"].set("k", "new", version=None)
    views.world.heal()
    shown = views["c"].get("k")
    assert shown is not None
    assert shown.value == "new"
    [conflict] = shown.conflicts
    assert (conflict.removed, conflict.value, conflict.owner) == (True, None, "a")


def test_a_removal_against_a_write_shows_the_write(views: Views) -> None:
    views["a"].set("k", "old", version=0)
    views.world.cut(("a",), ("b", "c"))
    lost = views["a"].set("k", "new", version=None)
    views.world.advance(5)
    views["b"].remove("k", version=None)
    views.world.heal()
    assert views["c"].get("k") is None
    assert views["c"].conflicts("k") == (lost,)


def test_three_that_collide_are_shown_newest_first(views: Views) -> None:
    views.world.cut()
    for name in "abc":
        views[name].set("k", name, version=None)
        views.world.advance(5)
    views.world.heal()
    shown = views["a"].get("k")
    assert shown is not None
    assert [shown.value, *(one.value for one in shown.conflicts)] == ["c", "b", "a"]


def test_a_value_from_the_future_is_shown_and_waits_for_its_time(views: Views) -> None:
    views["b"].set("k", "now", version=0)
    views.world["a"].skew_ms = 600_000
    views["a"].set("k", "later", version=None)
    for name in "bc":
        shown = views[name].get("k")
        assert shown is not None
        assert shown.value == "now"
        [waiting] = shown.conflicts
        assert (waiting.value, waiting.future, waiting.owner) == ("later", True, "a")
    assert views["b"].set("k", "still now", version=None).value == "still now"
    views.world.advance(600_000)
    assert views.value("c") == "later"


def test_a_value_only_from_the_future_is_none_yet(views: Views) -> None:
    views.world["a"].skew_ms = 600_000
    views["a"].set("k", "later", version=None)
    assert views["b"].get("k") is None
    assert [one.value for one in views["b"].conflicts("k")] == ["later"]


@pytest.mark.parametrize(
    "data",
    [
        b"\xc1",
        b"",
        b"\x91",
        msgspec.msgpack.encode(b"bytes"),
        msgspec.msgpack.encode({1: 2}),
        msgspec.msgpack.encode(float("nan")),
        msgspec.msgpack.encode(msgspec.msgpack.Ext(5, b"x")),
        b"\x91" * 40 + b"\x90",
        b"\x91" * 9000 + b"\x90",
        b"\x81\x90\x01",
    ],
)
def test_a_value_that_cannot_be_read_is_kept_and_listed_and_no_value(
    views: Views, data: bytes
) -> None:
    views["a"].set("readable", 1, version=0)
    held = views.world["b"].put("k", data)
    assert views["a"].get("k") is None
    assert [one.key for one in views["a"].all()] == ["readable"]
    [report] = views["a"].unreadable()
    assert (report.key, report.owner, report.version) == ("k", "b", held.version)
    assert report.reason == "value"
    kept = views.world["a"].get("k")
    assert kept is not None
    assert kept.value == data
    assert len(views["a"]) == 2


def test_a_value_that_cannot_be_read_is_not_written_over_by_accident(views: Views) -> None:
    held = views.world["b"].put("k", b"\xc1")
    with pytest.raises(StateError, match="changed"):
        views["a"].set("k", 1, version=0)
    assert views["a"].set("k", 1, version=held.version).value == 1
    assert views["a"].unreadable() == []


def test_a_conflict_that_cannot_be_read_is_left_out(views: Views) -> None:
    views.world.cut(("a",), ("b", "c"))
    views.world["a"].put("k", b"\xc1")
    views.world.advance(5)
    views["b"].set("k", 1, version=None)
    views.world.heal()
    shown = views["c"].get("k")
    assert shown is not None
    assert shown.conflicts == ()


def test_the_digest_is_equal_where_the_same_counts(views: Views) -> None:
    empty = views["a"].digest()
    assert len(empty) == 16
    int(empty, 16)
    views.world.hold()
    views["a"].set("k", 1, version=0)
    views["b"].set("k", 1, version=0)
    assert views["a"].digest() == views["b"].digest() != empty == views["c"].digest()
    views["b"].set("k", 2, version=None)
    assert views["a"].digest() != views["b"].digest()
    views.world.heal()
    assert views["a"].digest() == views["b"].digest() == views["c"].digest()
    views["c"].remove("k", version=None)
    assert views["a"].digest() == empty


def test_who_watches_hears_which_keys_changed(views: Views) -> None:
    heard: list[list[str]] = []
    views["b"].watch(lambda keys: heard.append(list(keys)))
    views["a"].set("k", 1, version=0)
    views["b"].set("l", 2, version=0)
    views["c"].remove("k", version=None)
    assert heard == [["k"], ["l"], ["k"]]


def test_a_setting_can_be_said_in_json(views: Views) -> None:
    said = views["a"].set("k", {"a": [1, None]}, version=0)
    assert msgspec.json.decode(msgspec.json.encode(said)) == {
        "key": "k",
        "value": {"a": [1, None]},
        "version": said.version,
        "owner": "a",
        "time_ms": EPOCH_MS,
        "conflicts": [],
        "future": False,
        "removed": False,
    }
    assert isinstance(said, SettingValue)
