"""An answer whose worker is lost is the answer it would have been: every token index, every kind of loss."""

import asyncio
import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from smg_node.core.generation.request import Sampling
from smg_node.engines.disaggregation import Style
from smg_node.fleet.health.circuit_breaker import BreakerOptions
from smg_node.routing.retry_budget import RetryOptions
from support.engines.failing_engines import KINDS, SEED, Break, Choir, Heard, heard
from support.engines.generation_bench import Bench, bench_of
from support.engines.paired_engines import Network
from support.fleet.fleet_builder import FAST

TEXT = "héllo 🙂 and — 你好!".encode()
PROMPT = 2
WORKERS = 8
UNBOUNDED = RetryOptions(floor_per_s=1e9, first_s=0.0, most_s=0.0)
CALM = replace(FAST, breaker=BreakerOptions(enabled=False), probe_interval_s=60.0)


async def play(it: Bench, choir: Choir, sampling: Sampling, *breaks: Break) -> Heard:
    choir.breaks = [*breaks]
    choir.broken = 0
    found = heard(await it.events(sampling, echo=True))
    assert it.idle()
    return found


async def undisturbed(it: Bench, choir: Choir, sampling: Sampling) -> Heard:
    found = await play(it, choir, sampling)
    assert found.error is None
    assert found.usage is not None
    assert found.usage.cached_tokens <= PROMPT
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cut", [1, 3])
async def test_one_loss_at_every_index_leaves_the_answer_as_it_was(
    tmp_path: Path, kind: str, cut: int
) -> None:
    choir = Choir([TEXT], PROMPT, cut=cut)
    engines = choir.engines(WORKERS, native_n=False)
    async with bench_of(tmp_path, engines, retries=UNBOUNDED, options=CALM) as it:
        for sampling in (
            Sampling(seed=SEED),
            Sampling(seed=SEED, logprobs=0),
            Sampling(seed=SEED, max_tokens=17),
            Sampling(seed=SEED, stop=("d —",), min_tokens=3),
            Sampling(seed=SEED, stop=("—",), keep_stop=True),
        ):
            right = await undisturbed(it, choir, sampling)
            lost = 0
            for after in range(len(TEXT) // cut + 3):
                found = await play(it, choir, sampling, Break(kind, after))
                lost += choir.broken
                assert found == right, (sampling, after)
            assert lost >= 10 // cut
        assert sum(outcome.continuations for outcome in it.outcomes) > 20 // cut


@pytest.mark.parametrize("style", ["room", "nixl"])
@pytest.mark.parametrize("kind", KINDS)
async def test_one_loss_at_every_index_of_a_pairs_answer_leaves_it_as_it_was(
    tmp_path: Path, kind: str, style: Style
) -> None:
    choir = Choir([TEXT, b"short"], PROMPT)
    network = Network(style, patience_s=5.0)
    engines = {f"p{at}": network.prefill() for at in range(3)}
    for name, engine in choir.engines(WORKERS, native_n=False).items():
        engines[name] = network.decode(choir.script)
        engines[name].abilities = engine.abilities
    async with bench_of(tmp_path, engines, retries=UNBOUNDED, options=CALM) as it:
        for sampling in (
            Sampling(seed=SEED, logprobs=0, stop=("你好!",)),
            Sampling(seed=SEED, n=2, max_tokens=17),
        ):
            right = await undisturbed(it, choir, sampling)
            for after in range(0, len(TEXT) + 3, 2 if sampling.n == 1 else 5):
                found = await play(it, choir, sampling, Break(kind, after))
                assert found == right, (sampling, after)
        assert sum(outcome.continuations for outcome in it.outcomes) > 10
        assert not any(engine.open for engine in engines.values())


@pytest.mark.parametrize("native_n", [True, False], ids=["one-call", "a-call-each"])
@pytest.mark.parametrize("count", [2, 3])
async def test_several_answers_each_go_on_by_themselves(
    tmp_path: Path, count: int, native_n: bool
) -> None:
    texts = [TEXT, b"short", "другой".encode()]
    choir = Choir(texts, PROMPT)
    engines = choir.engines(WORKERS, native_n=native_n)
    async with bench_of(tmp_path, engines, retries=UNBOUNDED, options=CALM) as it:
        sampling = Sampling(seed=SEED, n=count, logprobs=0, stop=("d —", "угой"))
        right = await undisturbed(it, choir, sampling)
        for after in range(sum(map(len, texts[:count])) + 4):
            for kind in ("killed", "forgotten", "babbling"):
                found = await play(it, choir, sampling, Break(kind, after))
                assert found == right, (kind, after)


class Stage:
    """A place for examples that come one by one, each with engines of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, choir: Choir, sampling: Sampling, breaks: list[Break], *, native_n: bool) -> None:
        async def both() -> None:
            engines = choir.engines(WORKERS, native_n=native_n)
            async with bench_of(self.folder, engines, retries=UNBOUNDED, options=CALM) as it:
                right = await undisturbed(it, choir, sampling)
                found = await play(it, choir, sampling, *breaks)
                assert found == right

        asyncio.run(both())


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return Stage(tmp_path_factory.mktemp("stage"))


texts = st.lists(st.text(alphabet="ab é🙂.", max_size=12).map(str.encode), min_size=3, max_size=3)


@given(
    texts=texts,
    count=st.integers(1, 3),
    native_n=st.booleans(),
    cut=st.integers(1, 4),
    ended=st.booleans(),
    spoken=st.lists(st.tuples(st.sampled_from(KINDS), st.integers(1, 14)), max_size=2),
    silent=st.lists(st.sampled_from(["killed", "failed", "pressed", "removed"]), max_size=2),
    silent_at=st.integers(0, 2),
    stop=st.lists(st.text(alphabet="ab é", min_size=1, max_size=3), max_size=2).map(tuple),
    max_tokens=st.integers(1, 12),
    logprobs=st.booleans(),
)
def test_losses_in_a_row_leave_the_answers_as_they_were(
    stage: Stage,
    texts: list[bytes],
    count: int,
    native_n: bool,
    cut: int,
    ended: bool,
    spoken: list[tuple[str, int]],
    silent: list[str],
    silent_at: int,
    stop: tuple[str, ...],
    max_tokens: int,
    logprobs: bool,
) -> None:
    # Two engines that die at once of their only request may have died of it: that is another test.
    assume([*silent, *(kind for kind, _ in spoken)].count("killed") <= 1)
    # Without an end-of-text only the limit ends an answer, so there must be enough to say.
    said = texts if ended else [text * 13 + b"abcdefghijkl" for text in texts]
    choir = Choir(said, PROMPT, cut=cut, ended=ended)
    sampling = Sampling(
        seed=SEED,
        n=count,
        stop=stop,
        max_tokens=max_tokens,
        logprobs=0 if logprobs else None,
    )
    breaks = [Break(kind, after) for kind, after in spoken]
    breaks[silent_at:silent_at] = [Break(kind, 0) for kind in silent]
    stage.run(choir, sampling, breaks, native_n=native_n)


async def test_a_storm_of_losses_under_many_streams_leaves_them_all_exact(tmp_path: Path) -> None:
    choir = Choir([TEXT], PROMPT)
    engines = choir.engines(WORKERS, native_n=False)
    rng = random.Random(4)
    async with bench_of(tmp_path, engines, retries=UNBOUNDED, options=CALM) as it:
        sampling = Sampling(seed=SEED)
        right = await undisturbed(it, choir, sampling)
        kinds = [rng.choice(KINDS) for _ in range(60)]
        choir.breaks = [Break(kind, rng.randrange(1, 20)) for kind in kinds]
        choir.first_only = True

        async def one() -> Heard:
            return heard(await it.events(sampling, echo=True))

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one()) for _ in range(64)]
        assert choir.broken == 60
        assert all(task.result() == right for task in tasks)
        assert it.idle()
        assert sum(outcome.continuations for outcome in it.outcomes) == 60


async def test_a_third_loss_is_told_and_never_made_up_for(tmp_path: Path) -> None:
    choir = Choir([TEXT], PROMPT)
    engines = choir.engines(WORKERS, native_n=False)
    async with bench_of(tmp_path, engines, retries=UNBOUNDED, options=CALM) as it:
        for kind in KINDS:
            found = await play(it, choir, Sampling(seed=SEED), *[Break(kind, 3)] * 3)
            assert found.error is not None
            assert found.error.status >= 500
            assert "2 times" in found.error.message or "2 engines" in found.error.message
            assert not found.finishes
            assert found.usage is None
            assert TEXT.decode().startswith(found.texts[0].rstrip("\ufffd"))
