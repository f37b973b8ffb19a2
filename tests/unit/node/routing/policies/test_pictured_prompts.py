"""Where prompts with pictures go: to who has the picture, else to its owner, unless that costs too much."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence

from smg_node.fleet.load.worker_load import WorkerLoad
from smg_node.routing.policy import Asked, PromptPictures
from smg_node.routing.policy_registry import OwnBindings, Policies
from smg_node.routing.pool import Pool
from support.fleet.worker_pools import FakeBeginning

IDS = range(3_000)
NOW_S = 100.0


def pool(count: int) -> tuple[Pool, list[WorkerLoad]]:
    loads = [WorkerLoad(f"w{at:02}", sampled_s=NOW_S) for at in range(count)]
    return Pool(loads), loads


def pictures(name: int, begins: int = 200) -> PromptPictures:
    return PromptPictures(name.to_bytes(8, "big"), begins, ((begins + 1_000, 1_000),))


def asked(
    name: int, known: Mapping[str, float] | None = None, extra: Sequence[float] = ()
) -> Asked:
    return Asked(
        "m",
        ids=IDS,
        now_s=NOW_S,
        beginning=FakeBeginning(known or {}),
        pictures=pictures(name),
        extra_s=extra,
    )


def chosen(of: Pool, wish: Asked, seed: int = 1) -> int:
    return Policies(OwnBindings()).named("cache_aware").choose(wish, of, random.Random(seed))


def test_pictures_behind_the_same_words_are_spread_and_each_has_one_owner() -> None:
    some, _ = pool(4)
    owners = [chosen(some, asked(at * 7_919), seed=at) for at in range(200)]
    assert [chosen(some, asked(at * 7_919), seed=at + 900) for at in range(200)] == owners
    assert min(Counter(owners).values()) > 20
    texts = [chosen(some, Asked("m", ids=IDS, now_s=NOW_S, beginning=FakeBeginning()))]
    assert len(set(texts)) == 1, "without pictures the first block decides"


def test_who_has_the_picture_keeps_it_though_another_one_owns_it() -> None:
    some, _ = pool(4)
    owner = chosen(some, asked(5))
    other = (owner + 1) % 4
    assert chosen(some, asked(5, {f"w{other:02}": 2_000.0})) == other


def test_words_that_all_have_cached_do_not_hide_whose_the_picture_is() -> None:
    some, _ = pool(4)
    everywhere = {f"w{at:02}": 192.0 for at in range(4)}
    assert {chosen(some, asked(5, everywhere), seed) for seed in range(50)} == {
        chosen(some, asked(5))
    }


def test_an_owner_that_is_much_busier_is_not_waited_for() -> None:
    some, loads = pool(4)
    owner = chosen(some, asked(5))
    loads[owner].begin(40_000)
    assert chosen(some, asked(5)) != owner


def test_what_an_encoder_takes_counts_as_what_is_computed() -> None:
    some, _ = pool(2)
    beginning = {"w00": 2_000.0, "w01": 2_100.0}
    assert chosen(some, asked(5, beginning, (0.0, 0.5))) == 0
    assert chosen(some, asked(5, beginning, (0.5, 0.0))) == 1


def test_pictures_that_are_cached_take_no_encoder() -> None:
    seen = PromptPictures(b"", 10, ((110, 100), (400, 250), (900, 50)))
    assert [seen.uncached(at) for at in (0, 109, 110, 399, 400, 899, 900, 2_000)] == [
        400, 400, 300, 300, 50, 50, 0, 0,
    ]  # fmt: skip
