"""A breaker under any order of words and any time: it opens by the rules only, one probe, never for ever."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import example, given, settings
from hypothesis import strategies as st

from smg_node.fleet.health.backpressure import ASKED_MAX_S, JITTER
from smg_node.fleet.health.circuit_breaker import (
    EARLY_S,
    LOOK_PATIENCE_S,
    PROBE_MAX_S,
    Breaker,
    BreakerOptions,
    State,
)
from support.tools.example_counts import example_count

OPTIONS = BreakerOptions(
    window_s=10.0, samples_min=4, connect_failures=3, open_s=2.0, open_max_s=9.0
)
BOUND_S = OPTIONS.open_max_s * (1 + JITTER) + LOOK_PATIENCE_S + PROBE_MAX_S + ASKED_MAX_S

WORDS = ("success", "failure", "connect", "pressure", "asked", "abandoned", "spoke")
ACTS = st.lists(
    st.tuples(
        st.sampled_from(
            [*WORDS, *WORDS, "place", "place", "place", "good look", "bad look", "hint"]
        ),
        st.sampled_from([0.0, 0.0, 0.0, 0.1, 1.0, 3.0, 12.0, 70.0]),
        st.integers(0, 7),
    ),
    max_size=150,
)


@dataclass
class World:
    """A breaker with the calls that were placed, and what its rules may be judged by."""

    one: Breaker
    now_s: float = 0.0
    calls: list[int] = field(default_factory=list)
    """Tokens of the calls under way."""
    samples: list[tuple[float, bool]] = field(default_factory=list)
    """When, and whether it failed; since it closed."""
    row: int = 0
    hinted_s: float = -100.0
    trial: set[int] = field(default_factory=set)
    """Probes since it was open last."""
    told: int = 0

    def tell(self) -> None:
        self.told += 1

    def may_open(self, *, connect: bool) -> bool:
        """Whether the rules allow a closed one to open with a failure now. Buckets are a second wide."""
        failures = 1 + sum(bad and at_s > self.now_s - 10 for at_s, bad in self.samples)
        fewest_good = sum(not bad and at_s > self.now_s - 9 for at_s, bad in self.samples)
        most = failures + sum(not bad and at_s > self.now_s - 10 for at_s, bad in self.samples)
        share = most >= 4 and failures >= 0.5 * (failures + fewest_good)
        return share or self.row + connect >= 3 or self.now_s < self.hinted_s + 10

    def must_open(self, *, connect: bool) -> bool:
        failures = 1 + sum(bad and at_s > self.now_s - 9 for at_s, bad in self.samples)
        most_good = sum(not bad and at_s > self.now_s - 10 for at_s, bad in self.samples)
        fewest = failures + sum(not bad and at_s > self.now_s - 9 for at_s, bad in self.samples)
        share = fewest >= 4 and failures >= 0.5 * (failures + most_good)
        return share or self.row + connect >= 3 or self.now_s < self.hinted_s + 10

    # ── What may happen ──────────────────────────────────────────────────────

    def place(self) -> None:
        one, now_s = self.one, self.now_s
        state, allowed = one.state(now_s), one.usable(now_s) or one.probe_free(now_s, alone=True)
        if not allowed:
            if state is not State.CLOSED:
                assert one.take_probe(now_s) == 0
            return
        token = one.take_probe(now_s)
        assert one.state(now_s) is not State.OPEN
        if state is not State.CLOSED:
            assert token, "half open, every call that may be placed is a probe"
            assert not one.probe_free(now_s, alone=True), "one at a time"
            assert not one.usable(now_s), "one at a time"
            assert one.take_probe(now_s) == 0
            if state is State.OPEN:
                self.trial.clear()
            self.trial.add(token)
        self.calls.append(token)

    def fails(self, *, connect: bool, probe: int) -> None:
        one, now_s = self.one, self.now_s
        before, opened = one.state(now_s), one.opened
        may, must = self.may_open(connect=connect), self.must_open(connect=connect)
        one.failure(now_s, connect=connect, probe=probe)
        after = one.state(now_s)
        if before is State.CLOSED:
            if after is State.OPEN:
                assert may or probe in self.trial
            else:
                assert not must
                self.samples.append((now_s, True))
                self.row += connect
        elif before is State.HALF_OPEN and probe not in self.trial:
            assert after is State.HALF_OPEN, "only probes decide"
        elif before is State.OPEN:
            assert one.opened == opened, "what is open does not open"

    def speaks(self, word: str, probe: int) -> None:
        one, now_s = self.one, self.now_s
        before = one.state(now_s)
        getattr(one, word)(now_s, probe)
        self.row = 0
        if before is State.CLOSED and word == "success":
            self.samples.append((now_s, False))
        if one.state(now_s) is not before:
            assert (before, one.state(now_s)) == (State.HALF_OPEN, State.CLOSED)
            assert probe in self.trial
            self.samples.clear()
            self.hinted_s = -100.0

    def act(self, word: str, place: int) -> None:
        one, now_s = self.one, self.now_s
        if one.state(now_s) is State.OPEN:
            self.samples.clear()
            self.row = 0
        if word == "place":
            self.place()
            return
        if word in ("good look", "bad look"):
            before = one.state(now_s)
            one.looked(now_s, good=word == "good look")
            assert before is State.HALF_OPEN or one.state(now_s) is before
            return
        if word == "hint":
            one.hint(now_s)
            self.hinted_s = now_s
            return
        if not self.calls:
            return
        at = place % len(self.calls)
        probe = self.calls[at]
        if word != "spoke":
            del self.calls[at]
        match word:
            case "failure" | "connect":
                self.fails(connect=word == "connect", probe=probe)
            case "pressure" | "asked":
                before = one.state(now_s)
                one.pressure(now_s, None if word == "pressure" else place * 30.0, probe)
                assert one.state(now_s) is before, "who is full is not broken"
            case "abandoned":
                before = one.state(now_s)
                one.abandoned(now_s, probe)
                assert one.state(now_s) is before
            case _:
                self.speaks(word, probe)


def world(seed: int) -> World:
    found = World(Breaker(OPTIONS, random.Random(seed)))
    found.one = Breaker(OPTIONS, random.Random(seed), changed=found.tell)
    return found


@settings(max_examples=example_count(500), deadline=None)
@given(acts=ACTS, seed=st.integers(0, 2**16))
def test_it_opens_by_the_rules_only_with_one_probe_at_a_time(
    acts: Sequence[tuple[str, float, int]], seed: int
) -> None:
    scene = world(seed)
    for word, pause_s, place in acts:
        scene.now_s += pause_s
        scene.act(word, place)


@settings(max_examples=example_count(300), deadline=None)
@given(acts=ACTS, seed=st.integers(0, 2**16))
def test_what_is_not_told_to_one_without_trouble_would_have_changed_nothing(
    acts: Sequence[tuple[str, float, int]], seed: int
) -> None:
    spared, told = world(seed), world(seed)
    for word, pause_s, place in acts:
        told.one.troubled = True
        for scene in (spared, told):
            scene.now_s += pause_s
            # Who places and hears calls asks and tells nothing then.
            if word != "spoke" or scene.one.troubled:
                scene.act(word, place)
            else:
                scene.row = 0
        assert spared.one.view(spared.now_s) == told.one.view(told.now_s)
        assert spared.told == told.told
        if not spared.one.troubled:
            assert spared.one.take_probe(spared.now_s) == 0
            assert spared.one.view(spared.now_s) == told.one.view(told.now_s)


FULL_WHEN_TRIED = [
    ("place", 0.0, 0),
    ("hint", 0.0, 0),
    ("failure", 0.0, 0),
    ("place", 1.0, 0),
    ("pressure", 0.0, 0),
    ("place", 0.0, 0),
]


@settings(max_examples=example_count(300), deadline=None)
@example(acts=FULL_WHEN_TRIED, seed=0, looks=False)
@given(acts=ACTS, seed=st.integers(0, 2**16), looks=st.booleans())
def test_after_anything_it_can_be_used_again_within_a_known_time(
    acts: Sequence[tuple[str, float, int]], seed: int, looks: bool
) -> None:
    scene = world(seed)
    for word, pause_s, place in acts:
        scene.now_s += pause_s
        scene.act(word, place)
    one, until_s = scene.one, scene.now_s + BOUND_S
    while not one.usable(scene.now_s):
        if looks and one.look_s(scene.now_s) <= scene.now_s:
            one.looked(scene.now_s, good=True)
            continue
        next_s = one.next_s(scene.now_s)
        assert scene.now_s < next_s <= until_s
        scene.now_s = next_s
    # And from there two answers make it what it was, however often it had failed.
    for _ in range(OPTIONS.close_after):
        scene.now_s += 0.01
        if one.state(scene.now_s) is State.HALF_OPEN:
            one.spoke(scene.now_s, one.take_probe(scene.now_s))
    assert one.state(scene.now_s) is State.CLOSED


@settings(max_examples=example_count(300), deadline=None)
@given(acts=ACTS, seed=st.integers(0, 2**16))
def test_whoever_looks_again_only_when_told_or_when_it_is_time_misses_nothing(
    acts: Sequence[tuple[str, float, int]], seed: int
) -> None:
    """What decisions stand on is kept until `changed` is called or `next_s` is over."""
    scene = world(seed)
    one = scene.one

    def answers() -> tuple[bool, ...]:
        alone = one.probe_free(scene.now_s, alone=True)
        return one.usable(scene.now_s), one.probe_free(scene.now_s), alone, one.busy(scene.now_s)

    kept, until_s, told = answers(), one.next_s(0.0), scene.told
    for word, pause_s, place in acts:
        target_s = scene.now_s + pause_s
        while until_s <= target_s:
            scene.now_s = until_s
            kept, until_s = answers(), one.next_s(scene.now_s)
        scene.now_s = target_s
        assert answers() == kept
        scene.act(word, place)
        if scene.told != told:
            kept, until_s, told = answers(), one.next_s(scene.now_s), scene.told
        else:
            assert answers() == kept
            until_s = min(until_s, one.next_s(scene.now_s))


@settings(max_examples=example_count(100), deadline=None)
@given(acts=ACTS, seed=st.integers(0, 2**16))
def test_the_same_words_and_the_same_chance_give_the_same_breaker(
    acts: Sequence[tuple[str, float, int]], seed: int
) -> None:
    scenes = world(seed), world(seed)
    for word, pause_s, place in acts:
        for scene in scenes:
            scene.now_s += pause_s
            scene.act(word, place)
        assert scenes[0].one.view(scenes[0].now_s) == scenes[1].one.view(scenes[1].now_s)
    assert scenes[0].one.opened_s == scenes[1].one.opened_s
    assert OPTIONS.open_s > EARLY_S
