"""What this node knows of prefix caches, from what engines say to what placement asks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import pytest

from smg_node.core.generation.request import token_ids
from smg_node.engines.kv_events import CURSOR_CODE, KvBatch, KvBlock, KvStored
from smg_node.fleet.models.served_model import ServedModel
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.placement.prefix_caches import SETTLED_BLOCKS, Prefixes
from smg_node.routing.kv_index.prefix_index import ASSUMED_S, PrefixIndex
from smg_node.routing.pool import Pool
from support.engines.fake_engine import FakeEngine
from support.fleet.fleet_builder import declare, fleet_of

BLOCK = 64
IDS = token_ids(list(range(1000, 1000 + 4 * BLOCK)))


@dataclass
class Model:
    """As much of a served model as a prefix cache is about."""

    name: str = "tiny"
    bundle_digest: str = "0" * 64

    @property
    def pool(self) -> str:
        return self.name


def model_of(name: str = "tiny", digest: str = "0" * 64) -> ServedModel:
    return cast("ServedModel", Model(name, digest))


@dataclass
class Scene:
    prefixes: Prefixes
    one: Worker
    other: Worker
    now_s: float = 10.0

    def overlaps(self, model: ServedModel | None = None, *, adapter: str = "") -> list[float]:
        """How much of the prompt each worker has, in the order of `one` and `other`."""
        beginning = self.prefixes.of(model or self.one_model, IDS, adapter, self.now_s)
        assert beginning is not None
        found = beginning.overlaps(Pool([self.one.load, self.other.load]))
        return list(found)

    @property
    def one_model(self) -> ServedModel:
        assert self.one.model is not None
        return self.one.model

    def send(self, worker: Worker) -> None:
        beginning = self.prefixes.of(self.one_model, IDS, "", self.now_s)
        assert beginning is not None
        self.prefixes.dispatched(beginning, worker.id, self.now_s)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    fleet = fleet_of({"a": FakeEngine()}, tmp_path)
    one, other = sorted(declare(fleet, "a", "b"), key=lambda worker: worker.id)
    one.model = other.model = model_of()
    return Scene(Prefixes(PrefixIndex(), cluster="smg"), one, other)


def stored(blocks: int = 4, *, adapter: str = "", start: int = 0) -> KvStored:
    cut = [IDS[at * BLOCK : (at + 1) * BLOCK] for at in range(start, start + blocks)]
    made = tuple(KvBlock(100 + start + at, ids) for at, ids in enumerate(cut))
    return KvStored(None if not start else 99 + start, made, adapter=adapter)


def batch(sequence: int, *events: KvStored) -> KvBatch:
    return KvBatch(sequence, events)


def test_what_an_engine_says_is_what_placement_hears(scene: Scene) -> None:
    assert scene.prefixes.start(scene.one) == 0
    assert not scene.prefixes.batch(scene.one, batch(5, stored(3)), scene.now_s)
    assert scene.overlaps() == [3 * BLOCK, 0.0]


def test_what_was_sent_to_a_rank_is_assumed_there_and_so_is_the_answer(scene: Scene) -> None:
    beginning = scene.prefixes.of(scene.one_model, IDS, "", scene.now_s)
    assert beginning is not None
    scene.prefixes.dispatched(beginning, scene.one.id, scene.now_s, rank=1)
    assert beginning.by_rank(scene.one.id) == {1: 2.0 * BLOCK}
    scene.prefixes.answered(
        beginning, token_ids(list(range(BLOCK))), scene.one.id, scene.now_s, rank=1
    )
    whole = IDS + token_ids(list(range(BLOCK)))
    longer = scene.prefixes.of(scene.one_model, whole, "", scene.now_s)
    assert longer is not None
    assert longer.by_rank(scene.one.id) == {1: 2.5 * BLOCK}
    assert longer.by_rank(scene.other.id) == {}


def test_models_adapters_and_tokenizers_are_kept_apart(scene: Scene) -> None:
    scene.prefixes.start(scene.one)
    scene.prefixes.batch(scene.one, batch(5, stored(3), stored(2, adapter="law")), scene.now_s)
    assert scene.overlaps(model_of("other")) == [0.0, 0.0]
    assert scene.overlaps(model_of(digest="1" * 64)) == [0.0, 0.0]
    assert scene.overlaps(adapter="tax") == [0.0, 0.0]


def test_two_nodes_of_one_cluster_call_a_prompt_the_same_and_those_of_another_do_not() -> None:
    firsts = []
    for cluster in ("smg", "smg", "else"):
        prefixes = Prefixes(PrefixIndex(), cluster=cluster)
        beginning = prefixes.of(model_of(), IDS, "", 1.0)
        assert beginning is not None
        firsts.append(beginning.first())
    assert firsts[0] == firsts[1] != firsts[2]


def test_a_hole_is_told_to_the_listener_and_the_view_is_given_up(scene: Scene) -> None:
    scene.prefixes.start(scene.one)
    scene.prefixes.batch(scene.one, batch(5, stored(3)), scene.now_s)
    assert scene.prefixes.batch(scene.one, batch(7), scene.now_s)
    assert scene.prefixes.start(scene.one) == 0
    assert scene.overlaps() == [0.0, 0.0]
    assert scene.prefixes.counts()["gaps"] == 1


def test_a_subscription_goes_on_where_it_was_until_the_engine_says_no(scene: Scene) -> None:
    scene.prefixes.start(scene.one)
    scene.prefixes.batch(scene.one, batch(5, stored(3)), scene.now_s)
    scene.prefixes.closed(scene.one, scene.now_s)
    assert scene.prefixes.start(scene.one) == 6
    assert scene.overlaps() == [3 * BLOCK, 0.0]
    scene.prefixes.lost(scene.one, CURSOR_CODE)
    assert scene.prefixes.start(scene.one) == 0
    assert scene.overlaps() == [0.0, 0.0]


def test_what_was_heard_counts_half_when_nothing_is_heard_for_long(scene: Scene) -> None:
    scene.prefixes.start(scene.one)
    scene.prefixes.batch(scene.one, batch(5, stored(4)), scene.now_s)
    scene.prefixes.closed(scene.one, scene.now_s)
    scene.now_s += 20
    assert scene.overlaps() == [2 * BLOCK, 0.0]
    scene.prefixes.batch(scene.one, batch(6), scene.now_s)
    assert scene.overlaps() == [4 * BLOCK, 0.0]


def test_another_model_at_the_same_worker_begins_with_nothing(scene: Scene) -> None:
    scene.prefixes.start(scene.one)
    scene.prefixes.batch(scene.one, batch(5, stored(3)), scene.now_s)
    scene.one.model = model_of()
    assert scene.prefixes.start(scene.one) == 0
    assert scene.overlaps() == [0.0, 0.0]


def test_what_is_said_of_a_worker_that_was_replaced_changes_nothing(scene: Scene) -> None:
    old = scene.one
    scene.prefixes.start(old)
    new = Worker(replace(old.declared), old.load, old.breaker)
    new.model = old.model
    scene.prefixes.gone(old)
    scene.prefixes.start(new)
    scene.prefixes.batch(new, batch(5, stored(3)), scene.now_s)
    assert not scene.prefixes.batch(old, batch(9), scene.now_s)
    scene.prefixes.closed(old, scene.now_s)
    scene.prefixes.lost(old, CURSOR_CODE)
    scene.prefixes.relieved(old)
    scene.prefixes.gone(old)
    scene.now_s += 60
    assert scene.overlaps() == [3 * BLOCK, 0.0]
    assert scene.prefixes.start(new) == 6


def test_a_worker_that_is_gone_is_forgotten_with_what_was_assumed_of_it(scene: Scene) -> None:
    scene.prefixes.start(scene.one)
    scene.prefixes.batch(scene.one, batch(5, stored(3)), scene.now_s)
    scene.send(scene.other)
    scene.prefixes.gone(scene.one)
    scene.prefixes.gone(scene.other)
    assert scene.overlaps() == [0.0, 0.0]
    scene.prefixes.gone(scene.other)


def test_a_worker_that_says_nothing_has_what_was_sent_there_for_half(scene: Scene) -> None:
    told: list[tuple[str, Sequence[int], float]] = []
    scene.prefixes.tell_assumed(lambda *said: told.append(said))
    scene.send(scene.other)
    assert scene.overlaps() == [0.0, 2 * BLOCK]
    assert [(worker, len(hashes)) for worker, hashes, _ in told] == [(scene.other.id, 4)]
    scene.now_s += 200
    scene.prefixes.tick(scene.now_s)
    assert scene.overlaps() == [0.0, 0.0]


def test_nothing_is_assumed_of_a_worker_that_is_heard(scene: Scene) -> None:
    scene.prefixes.start(scene.one)
    scene.one.following = True
    scene.send(scene.one)
    assert scene.overlaps() == [0.0, 0.0]
    scene.one.following = False
    scene.send(scene.one)
    assert scene.overlaps() == [2 * BLOCK, 0.0]


def test_when_others_hear_a_worker_their_word_counts_and_what_was_heard_here_is_a_guess(
    scene: Scene,
) -> None:
    scene.prefixes.start(scene.one)
    scene.prefixes.batch(scene.one, batch(5, stored(3)), scene.now_s)
    scene.prefixes.relieved(scene.one)
    assert scene.overlaps() == [1.5 * BLOCK, 0.0]
    beginning = scene.prefixes.of(scene.one_model, IDS, "", scene.now_s)
    hashes = scene.prefixes.index
    assert beginning is not None
    told = beginning.hashes(2)  # type: ignore[attr-defined]  # what `of` returns is a Prompt
    hashes.tell(scene.one.id, told[:2], scene.now_s)
    assert scene.overlaps() == [2.5 * BLOCK, 0.0]


def test_a_worker_that_holds_enough_is_no_longer_a_fresh_one(scene: Scene) -> None:
    scene.one.load.renewed(scene.now_s)
    scene.prefixes.start(scene.one)
    for at in range(SETTLED_BLOCKS):
        assert scene.one.load.fresh_until_s > scene.now_s
        ids = token_ids([at] * BLOCK)
        scene.prefixes.batch(
            scene.one, batch(at + 1, KvStored(None, (KvBlock(at + 7, ids),))), scene.now_s
        )
    assert scene.one.load.fresh_until_s < scene.now_s


def test_counts_outlive_the_workers_they_are_of(scene: Scene) -> None:
    scene.prefixes.start(scene.one)
    scene.prefixes.batch(scene.one, batch(5), scene.now_s)
    scene.prefixes.batch(scene.one, batch(8), scene.now_s)
    scene.prefixes.gone(scene.one)
    assert scene.prefixes.counts()["gaps"] == 1
    scene.prefixes.start(scene.one)
    assert scene.prefixes.counts()["resyncs"] == 1


def test_a_short_answer_says_nothing_new_until_what_was_assumed_of_its_prompt_is_old(
    scene: Scene,
) -> None:
    told: list[int] = []
    scene.prefixes.tell_assumed(lambda worker, hashes, now_s: told.append(len(hashes)))
    beginning = scene.prefixes.of(scene.one_model, IDS, "", scene.now_s)
    assert beginning is not None
    scene.prefixes.dispatched(beginning, scene.one.id, scene.now_s)
    scene.prefixes.answered(beginning, token_ids([7]), scene.one.id, scene.now_s)
    assert told == [4]
    scene.prefixes.answered(beginning, token_ids([7]), scene.one.id, scene.now_s + ASSUMED_S)
    assert told == [4, 4]
    scene.prefixes.answered(beginning, token_ids([7]), scene.other.id, scene.now_s)
    assert told == [4, 4, 4]


# ── Pictures ─────────────────────────────────────────────────────────────────

PLACES = (("d" * 64, BLOCK + 10),)


def pictured(scene: Scene, worker: Worker | None = None, name: str = "d" * 64) -> list[float]:
    """Send the prompt with a picture in its second block to a worker, if any; return who has how much of it."""
    beginning = scene.prefixes.of(scene.one_model, IDS, "", scene.now_s, ((name, BLOCK + 10),))
    assert beginning is not None
    if worker is not None:
        scene.prefixes.dispatched(beginning, worker.id, scene.now_s)
    return list(beginning.overlaps(Pool([scene.one.load, scene.other.load])))


def test_an_engine_that_names_no_pictures_is_believed_to_have_those_it_was_sent(
    scene: Scene,
) -> None:
    for one in (scene.one, scene.other):
        scene.prefixes.start(one)
        # It tells of the text before the picture, and of blocks that nobody recognises.
        scene.prefixes.batch(one, batch(0, stored(1)), scene.now_s)
        one.following = True
    pictured(scene, scene.one)
    found = pictured(scene)
    assert found[0] > found[1] == BLOCK
    assert pictured(scene, name="e" * 64) == [BLOCK, BLOCK], "another picture is another prompt"
    scene.send(scene.one)
    assert scene.overlaps() == [BLOCK, BLOCK], "of text it says itself what it has"


def test_what_an_engine_confirms_of_pictures_goes_before_what_was_assumed(scene: Scene) -> None:
    scene.prefixes.start(scene.one)
    scene.one.following = True
    pictured(scene, scene.one)
    assert pictured(scene)[0] == 4 * BLOCK / 2
    cut = [IDS[at * BLOCK : (at + 1) * BLOCK] for at in range(4)]
    blocks = [KvBlock(100, cut[0]), KvBlock(101, cut[1], media=(("d" * 64, 10),))]
    blocks += [KvBlock(100 + at, cut[at]) for at in (2, 3)]
    scene.prefixes.batch(scene.one, batch(0, KvStored(None, tuple(blocks))), scene.now_s)
    assert pictured(scene)[0] == 4 * BLOCK


@pytest.mark.parametrize(("token", "reached"), [(0, True), (BLOCK - 1, True), (BLOCK, False)])
def test_a_prompt_reaches_as_far_as_somebody_has_it(
    scene: Scene, token: int, *, reached: bool
) -> None:
    scene.prefixes.start(scene.one)
    scene.prefixes.batch(scene.one, batch(0, stored(1)), scene.now_s)
    beginning = scene.prefixes.of(scene.one_model, IDS, "", scene.now_s, PLACES)
    assert beginning is not None
    pool = Pool([scene.one.load, scene.other.load])
    assert beginning.reaches(pool, token) is reached
    assert not beginning.reaches(pool, 10_000)
