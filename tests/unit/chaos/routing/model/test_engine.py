"""An engine on virtual time does what its sizes say, step by step, and loses nothing."""

from array import array
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_chaos.engine.cache.blocks import Change, Removed, Stored
from smg_chaos.routing.model.engine import Engine, Job, keys_of
from smg_chaos.routing.model.engine_sizes import EngineSize
from smg_chaos.routing.model.virtual_clock import Agenda

SIZE = EngineSize()


class Stage:
    """An engine, and what became of jobs."""

    def __init__(self, size: EngineSize = SIZE) -> None:
        self.size = size
        self.agenda = Agenda()
        self.changes: list[Change] = []
        self.engine = Engine("e", size, self.agenda, self._heard)
        self.first_s: dict[int, float] = {}
        self.ended_s: dict[int, float] = {}
        self.jobs: list[Job] = []

    def _heard(self, engine: Engine, changes: Sequence[Change]) -> None:
        assert engine is self.engine
        self.changes += changes

    def submit(self, ids: "array[int]", prompt: int) -> Job:
        number = len(self.jobs)

        def first(job: Job) -> None:
            self.first_s[number] = self.agenda.now_s

        def ended(job: Job) -> None:
            self.ended_s[number] = self.agenda.now_s

        job = Job(ids, prompt, keys_of(ids, self.size), first=first, ended=ended)
        self.jobs.append(job)
        self.engine.submit(job)
        return job


def ids_of(seed: str, count: int) -> "array[int]":
    return array("I", Random(seed).randbytes(4 * count))


def test_a_model_of_70_b_on_four_h100_has_the_sizes_that_its_text_says() -> None:
    assert SIZE.weights_bytes == pytest.approx(141e9, rel=0.01)
    assert SIZE.kv_bytes == 327_680
    assert SIZE.kv_tokens == pytest.approx(399_780, rel=0.01)
    assert SIZE.prefill_rate == pytest.approx(11_200, rel=0.01)
    assert SIZE.weights_s == pytest.approx(0.015, rel=0.01)
    assert SIZE.context_s == pytest.approx(35e-9, rel=0.01)
    assert SIZE.step_s(32, 32 * 4_000, 0) == pytest.approx(0.0235, rel=0.01)


def test_one_prompt_takes_its_chunks_and_its_answer_a_step_a_token() -> None:
    stage = Stage()
    stage.submit(ids_of("a", 5_000 + 3), 5_000)
    stage.agenda.run(10.0)
    chunks = [SIZE.step_s(0, 0, taken) for taken in (2_048, 2_048, 904)]
    assert stage.first_s[0] == pytest.approx(sum(chunks))
    rest = [SIZE.step_s(1, 5_001, 0), SIZE.step_s(1, 5_002, 0)]
    assert stage.ended_s[0] == pytest.approx(sum(chunks) + sum(rest))


def test_what_was_computed_is_found_again_but_never_the_last_token() -> None:
    stage = Stage()
    ids = ids_of("a", 640)
    for prompt in (639, 639, 576):
        stage.submit(ids[: prompt + 1], prompt)
        stage.agenda.run(stage.agenda.now_s + 10)
    other = stage.submit(ids_of("b", 641), 640)
    stage.agenda.run(stage.agenda.now_s + 10)
    assert [job.cached for job in stage.jobs[:3]] == [0, 576, 512]
    assert other.cached == 0
    assert stage.engine.overlap(keys_of(ids, SIZE), 640) == 576


def test_an_answer_is_cached_when_it_has_ended() -> None:
    stage = Stage()
    ids = ids_of("a", 300)
    stage.submit(ids, 100)
    stage.agenda.run(10)
    follow = stage.submit(ids + ids_of("b", 50), 340)
    stage.agenda.run(20)
    assert follow.cached == 256
    stored = [
        one for change in stage.changes if isinstance(change, Stored) for one in change.contents
    ]
    assert [one.key for one in stored[:4]] == keys_of(ids, SIZE)
    assert [one.parent for one in stored[:4]] == [None, *keys_of(ids, SIZE)[:3]]


def test_who_has_no_slot_waits_and_the_room_is_for_whole_answers() -> None:
    stage = Stage(replace(SIZE, slots=1))
    stage.submit(ids_of("a", 110), 100)
    stage.submit(ids_of("b", 110), 100)
    assert (stage.engine.open, stage.engine.load().waiting) == (2, 1)
    stage.agenda.run(10)
    assert stage.first_s[1] > stage.ended_s[0]
    assert (stage.engine.open, stage.engine.pending) == (0, 0)


def test_what_is_oldest_is_evicted_and_said() -> None:
    size = replace(SIZE, memory_bytes=SIZE.memory_bytes * 0.57)
    stage = Stage(size)
    count = size.kv_tokens // 3
    for name in "abcd":
        stage.submit(ids_of(name, count), count - 1)
        stage.agenda.run(stage.agenda.now_s + 100)
    assert len(stage.ended_s) == 4
    gone = {key for one in stage.changes if isinstance(one, Removed) for key in one.keys}
    assert gone <= {*keys_of(ids_of("a", count), size), *keys_of(ids_of("b", count), size)}
    assert stage.engine.overlap(keys_of(ids_of("a", count), size), count) == 0
    assert stage.engine.overlap(keys_of(ids_of("d", count), size), count) > 0


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(1, 900), st.integers(1, 40), st.floats(0, 2)),
        min_size=1,
        max_size=12,
    ),
    st.integers(1, 4),
)
def test_every_job_gets_its_tokens_once_and_everything_is_given_back(
    asked: list[tuple[int, int, int, float]], slots: int
) -> None:
    stage = Stage(replace(SIZE, slots=slots))
    for start, prompt, answer, pause_s in asked:
        stage.submit(ids_of(f"{start}", 1_000)[: prompt + answer], prompt)
        stage.agenda.run(stage.agenda.now_s + pause_s)
        load = stage.engine.load()
        assert load.running + load.waiting == stage.engine.open
        assert load.running <= slots
    stage.agenda.run(1_000)
    assert set(stage.first_s) == set(stage.ended_s) == set(range(len(asked)))
    assert all(stage.first_s[at] <= stage.ended_s[at] for at in stage.first_s)
    assert (stage.engine.open, stage.engine.pending) == (0, 0)
    assert all(job.computed == job.prompt for job in stage.jobs)
    assert all(job.cached <= job.prompt - 1 for job in stage.jobs)
    assert stage.engine.load().kv_usage == 0.0
    held = _replayed(stage.changes)
    assert all(
        stage.engine.overlap(job.keys, job.prompt)
        == SIZE.block * _known(job.keys[: (job.prompt - 1) // SIZE.block], held)
        for job in stage.jobs
    )


def _replayed(changes: Sequence[Change]) -> dict[int, int]:
    """Return how many copies of each block are left, by what was said."""
    held: dict[int, int] = {}
    for change in changes:
        keys = [one.key for one in change.contents] if isinstance(change, Stored) else []
        for key in keys:
            held[key] = held.get(key, 0) + 1
        for key in change.keys if isinstance(change, Removed) else ():
            held[key] -= 1
    return held


def _known(keys: Sequence[int], held: dict[int, int]) -> int:
    return next((at for at, key in enumerate(keys) if not held.get(key)), len(keys))
