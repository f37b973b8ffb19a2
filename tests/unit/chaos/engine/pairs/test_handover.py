"""The shelf: what is there is taken once, by whoever asked first, early or late."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_chaos.engine.cache.shared_store import FolderStore, MemoryStore
from smg_chaos.engine.pairs.handover import Asking, Exchange, Gone, Handed, Shelf, Thing
from support.tools.example_counts import example_count

THING = Handed(1, 70, 32)


class Bench:
    """A shelf, and everything anybody heard."""

    def __init__(self, *, patient: bool = True) -> None:
        self.heard: list[Handed | Gone] = []
        self.told: list[str] = []
        self.shelf = Shelf(patient=patient, deserted=lambda key, _: self.told.append(f"bare {key}"))

    def hear(self, asking: Asking, what: Handed | Gone, now_s: float) -> None:
        self.heard.append(what)

    def put(self, key: str = "a", *, spoils: bool = True) -> Thing:
        left = (lambda _: self.told.append(f"left {key}")) if spoils else None
        thing = Thing(THING, lambda _: self.told.append(f"taken {key}"), left)
        self.shelf.put(key, thing, 0.0)
        return thing

    def ask(self, key: str = "a") -> Asking:
        return self.shelf.ask(key, self.hear, 0.0)


def test_what_is_there_is_heard_of_at_once_and_taken_once() -> None:
    bench = Bench()
    bench.put()
    asking = bench.ask()
    assert bench.heard == [THING]
    assert not bench.told, "it is not taken yet"
    asking.took(1.0)
    asking.took(1.0)
    asking.withdraw(1.0)
    assert bench.told == ["taken a"]
    assert len(bench.shelf) == 0


def test_who_asks_early_waits_where_the_shelf_is_patient() -> None:
    bench = Bench()
    asking = bench.ask()
    assert not bench.heard
    bench.put()
    assert bench.heard == [THING]
    asking.took(1.0)
    assert bench.told == ["taken a"]


def test_who_asks_early_is_sent_away_where_it_is_not() -> None:
    bench = Bench(patient=False)
    asking = bench.ask()
    assert isinstance(bench.heard[0], Gone)
    assert not bench.heard[0].absent
    asking.took(1.0)
    asking.withdraw(1.0)
    assert not bench.told


def test_only_one_asks_for_one_key() -> None:
    bench = Bench()
    first, second = bench.ask(), bench.ask()
    assert isinstance(bench.heard[0], Gone)
    second.withdraw(1.0)
    bench.put()
    first.took(1.0)
    assert bench.told == ["taken a"]


def test_whoever_leaves_spoils_it_or_leaves_it_for_another_one() -> None:
    bench = Bench()
    bench.put("a")
    bench.put("b", spoils=False)
    for key in "ab":
        bench.ask(key).withdraw(1.0)
    assert bench.told == ["left a"]
    assert ("a" in bench.shelf, "b" in bench.shelf) == (False, True)
    bench.ask("b").took(1.0)
    assert bench.told == ["left a", "taken b"]


def test_whoever_gives_up_waiting_is_told_of() -> None:
    bench = Bench()
    bench.ask().withdraw(1.0)
    assert bench.told == ["bare a"]


def test_what_is_dropped_is_gone_for_whoever_waits_or_heard() -> None:
    bench = Bench()
    bench.put("a")
    other = Thing(THING, lambda _: None)
    bench.shelf.drop("a", "old", 1.0, only=other)
    assert "a" in bench.shelf
    asking = bench.ask("a")
    bench.ask("b")
    bench.shelf.clear("all of it", 1.0)
    assert bench.heard == [THING, Gone("all of it"), Gone("all of it")]
    asking.took(2.0)
    assert not bench.told


STEP = st.tuples(st.sampled_from(["put", "ask", "took", "withdraw", "drop"]), st.integers(0, 2))


@given(steps=st.lists(STEP, max_size=40), patient=st.booleans())
@settings(max_examples=example_count(200), deadline=None)
def test_everything_is_taken_at_most_once_in_whatever_order(
    steps: list[tuple[str, int]], patient: bool
) -> None:
    bench = Bench(patient=patient)
    askings: list[Asking] = []
    put = 0
    for what, number in steps:
        key = "abc"[number]
        if what == "put" and key not in bench.shelf:
            bench.put(key, spoils=number == 0)
            put += 1
        elif what == "ask":
            askings.append(bench.ask(key))
        elif what == "drop":
            bench.shelf.drop(key, "gone", 0.0)
        elif askings:
            # Who heard of nothing has nothing to take.
            asking: Any = askings[number % len(askings)]
            if what == "withdraw":
                asking.withdraw(0.0)
            elif asking.over or asking.heard_of is not None:
                asking.took(0.0)
    taken = sum(told.startswith(("taken", "left")) for told in bench.told)
    assert taken + len(bench.shelf) <= put


def test_nobody_is_where_nobody_opened() -> None:
    bench = Bench()
    asking = Exchange().ask("h", 1, "a", bench.hear, 0.0)
    asking.took(0.0)
    asking.withdraw(0.0)
    assert bench.heard == [Gone("nobody is there", absent=True)]


def test_stores_know_beginnings_without_a_gap(tmp_path: Any) -> None:
    for store in (MemoryStore(), FolderStore(tmp_path / "kv")):
        store.put([1, 2, 4])
        assert [store.match(keys) for keys in ([], [1], [1, 2, 3, 4], [3], [1, 2, 4, 1])] == [
            *(0, 1, 2, 0, 4)
        ]
    assert FolderStore(tmp_path / "kv").match([1, 2]) == 2
