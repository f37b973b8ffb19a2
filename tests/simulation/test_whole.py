"""Everything at once keeps its promises by seed, and parts that are broken on purpose are noticed."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import pytest

from smg_chaos.simulate.batch import Task, run_task
from smg_chaos.simulate.outcome import Outcome
from smg_chaos.simulate.plans.whole_plans import random_whole_plan
from smg_mesh.escrow.limit_model import Limit
from smg_mesh.escrow.spendable_share import Share
from smg_mesh.state.workers.shared_load import LoadView
from smg_mesh.state.workers.worker_record import WorkerRecord
from smg_mesh.state.workers.worker_registry import WorkerRegistry
from smg_node.core.generation.events import Event
from smg_node.engines.chunk import Chunk
from smg_node.fleet.health.circuit_breaker import Breaker
from smg_node.fleet.load.worker_load import WorkerLoad
from smg_node.pipeline.stream.choice_stream import ChoiceStream

REMOVING: Final = 1
"""A seed in whose weather a worker that is in use is removed."""
Mutation = Callable[[pytest.MonkeyPatch], None]


def lived(seed: int) -> Outcome:
    return run_task(Task(seed=seed, nodes=5, profile="lan", scenario="whole"))


def test_all_promises_hold_under_traffic_in_any_weather() -> None:
    # 1671: a newcomer asks for rights of a slot whose owner is not the best claim. 1862: a crowd fills the one worker.
    outcomes = [lived(seed) for seed in (1, 3, 1671, 1862)]
    broken = [
        f"smg-chaos simulate --whole --seed {outcome.seed}: {outcome.broken[0]}"
        for outcome in outcomes
        if outcome.broken
    ]
    assert not broken, "\n".join(broken)
    assert sum(sum(outcome.figures["whole_requests"]) for outcome in outcomes) > 100
    assert sum(sum(outcome.figures["moved_requests"]) for outcome in outcomes) > 0


def test_a_seed_has_one_history_under_every_hash_seed() -> None:
    first, other = (told("6", hash_seed) for hash_seed in ("0", "random"))
    assert first == other
    assert re.search(r"^fingerprint [0-9a-f]{32}$", first, re.MULTILINE)


def told(seed: str, hash_seed: str) -> str:
    command = ("simulate", "--whole", "--story", "--seed", seed)
    done = subprocess.run(
        [sys.executable, "-m", "smg_chaos.cli", *command],
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_weather_is_drawn_by_seed_and_knows_every_fault() -> None:
    plans = [random_whole_plan(seed, 5) for seed in range(120)]
    assert plans[7] == random_whole_plan(7, 5)
    kinds = {type(fault).__name__ for plan in plans for fault in plan.faults}
    assert kinds >= {"Crash", "Restart", "Pause", "Slow", "ClockJump", "Storm", "Join", "Leave"}
    assert kinds >= {"EngineDies", "EngineStalls", "EngineUnreached", "Crowd"}
    assert kinds >= {"AddWorker", "RemoveWorker", "DrainWorker", "SetSetting", "BindKey"}
    assert kinds >= {"ChangeLimit", "KillOwner", "PauseOwner"}


# ── Broken on purpose ────────────────────────────────────────────────────────


def _nothing(*_: object, **__: object) -> None:
    return None


def _says_a_token_twice(broken: pytest.MonkeyPatch) -> None:
    feed = ChoiceStream.feed

    def twice(self: ChoiceStream, chunk: Chunk, out: list[Event]) -> None:
        feed(self, chunk, out)
        if self.generated % 7 == 3:
            feed(self, Chunk(0, chunk.ids), out)

    broken.setattr(ChoiceStream, "feed", twice)


def _goes_on_from_the_beginning(broken: pytest.MonkeyPatch) -> None:
    broken.setattr("smg_chaos.simulate.whole.request_run.rest_of", lambda leg, *_, **__: (leg,))


def _leaves_out_a_token_where_it_goes_on(broken: pytest.MonkeyPatch) -> None:
    from smg_node.pipeline.generation import continuation as continue_on

    rest = continue_on._rest

    def shorter(leg: Any, at: int, new: Any, *rest_of_them: Any) -> Any:
        return rest(leg, at, new[:-1], *rest_of_them)

    broken.setattr(continue_on, "_rest", shorter)


def _takes_every_worker_for_broken(broken: pytest.MonkeyPatch) -> None:
    broken.setattr(Breaker, "usable", lambda self, now_s: False)
    broken.setattr(Breaker, "probe_free", lambda self, now_s, alone=False: False)


def _never_lets_go_of_a_call(broken: pytest.MonkeyPatch) -> None:
    broken.setattr(WorkerLoad, "end", _nothing)


def _still_shows_what_was_removed(broken: pytest.MonkeyPatch) -> None:
    records = WorkerRegistry.records
    kept: dict[WorkerRegistry, dict[str, WorkerRecord]] = {}

    def all_ever(self: WorkerRegistry) -> Sequence[WorkerRecord]:
        known = kept.setdefault(self, {})
        known |= {record.id: record for record in records(self)}
        return list(known.values())

    broken.setattr(WorkerRegistry, "records", all_ever)


def _tells_nobody_what_is_open_any_more(broken: pytest.MonkeyPatch) -> None:
    publish = LoadView.publish

    def only_more(self: LoadView, loads: Any) -> int | None:
        if not loads:
            return None
        self.said = loads  # type: ignore[attr-defined]  # kept for the next time
        return publish(self, loads)

    def again(self: LoadView) -> int | None:
        return publish(self, getattr(self, "said", {}))

    broken.setattr(LoadView, "publish", lambda self, loads: only_more(self, loads) or again(self))


def _has_rights_for_ever(broken: pytest.MonkeyPatch) -> None:
    made = Share.__init__

    def more(self: Share, limit: Limit, call: Callable[[], object] | None = None) -> None:
        made(self, limit, call)
        self.left = 0

    def never_less(self: Share, name: str, value: Any) -> None:
        if name == "left" and value == getattr(self, "left", -1) - 1:
            return
        object.__setattr__(self, name, value)

    broken.setattr(Share, "__init__", more)
    broken.setattr(Share, "__setattr__", never_less, raising=False)


def _ends_before_the_end(broken: pytest.MonkeyPatch) -> None:
    def cut_short(self: ChoiceStream, chunk: Chunk, out: list[Event]) -> None:
        if self.generated < 6:
            feed(self, chunk, out)
        else:
            self.cut(out)

    feed = ChoiceStream.feed
    broken.setattr(ChoiceStream, "feed", cut_short)


MUTATIONS: Sequence[tuple[Mutation, Collection[int], str]] = (
    (_says_a_token_twice, (1,), "was told"),
    (_goes_on_from_the_beginning, (1,), "was told"),
    (_leaves_out_a_token_where_it_goes_on, (1,), "was told"),
    (_takes_every_worker_for_broken, (1,), "had no worker"),
    (_never_lets_go_of_a_call, (1,), "nothing is open"),
    (_still_shows_what_was_removed, (REMOVING,), "knows removed"),
    (_tells_nobody_what_is_open_any_more, (1,), "believes that others have"),
    (_has_rights_for_ever, (1,), "became of the"),
    (_ends_before_the_end, (1,), "is whole with"),
)


@pytest.mark.parametrize(
    ("mutate", "seeds", "promise"), MUTATIONS, ids=lambda one: getattr(one, "__name__", "")
)
def test_a_broken_part_is_noticed(
    mutate: Mutation, seeds: Collection[int], promise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    broken = [wrong for seed in seeds for wrong in lived(seed).broken]
    assert any(promise in wrong for wrong in broken), broken
