"""Verdict on a day: all figures, each with its target where one is promised."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from smg_chaos.gameday.history.final_check import figures as history_figures
from smg_chaos.gameday.whole.clients.stream_traffic import FAILURES, Stream
from smg_chaos.gameday.whole.day_run import AGREE_MAX_S, HEAL_MAX_S, Day
from smg_chaos.gameday.whole.fault_record import Happened
from smg_chaos.gameday.whole.scene import Scene
from smg_chaos.statistics import Figure, percentile

ENGINES: Final = ("engine", "engine-stall")
_MEMORY_MAX_MB: Final = 48.0
"""A life's caches of prompts and templates fill up to their bounds; a leak goes on."""
_FILES_MAX: Final = 64.0
"""Connections of engines, peers, the store and the clients of the moment come and go."""


def figures(scene: Scene, day: Day) -> list[Figure]:
    """Return all figures, those of clients first."""
    streams = scene.traffic.streams
    found = [*_streams(streams, scene), survived(streams, day.faults), *_faults(day)]
    found.append(
        Figure(
            "changes that failed",
            len(scene.operators.failed),
            "",
            0,
            f"of {scene.operators.changes} done",
        )
    )
    found += scene.capped.figures()
    if scene.has_store:
        ledger = scene.people.ledger
        found.append(Figure("turns that went wrong", len(ledger.failed), "", 0, _turns(scene)))
        if day.history is not None:
            found += history_figures(scene.stage.store, ledger, day.history)
    return [
        *found,
        Figure("mistakes in the nodes' logs", len(day.mistakes), "", 0),
        Figure("engines that a node has lost", day.missing_workers, "", 0),
        Figure("whole again after the day", day.whole_s, "s", HEAL_MAX_S),
        Figure("all state agrees after the day", day.agreed_s, "s", AGREE_MAX_S),
        Figure(
            "memory: the most a life grew",
            day.samples.growth(lambda one: one.rss_mb),
            "MB",
            _MEMORY_MAX_MB,
        ),
        Figure(
            "files: the most a life opened more",
            day.samples.growth(lambda one: one.files),
            "",
            _FILES_MAX,
        ),
    ]


def _turns(scene: Scene) -> str:
    ledger = scene.people.ledger
    told = f"{len(ledger.kept)} kept, {ledger.lost} lost with their node, {len(ledger.refused)} refused without a store"
    return (
        f"{told}, {ledger.unsure} of them because a node that was hurt may have what they continue"
    )


def _streams(streams: Sequence[Stream], scene: Scene) -> list[Figure]:
    counts = Counter(one.verdict for one in streams)
    all_of = f"of {len(streams)}"
    spoken = [one.spoken_s - one.begun_s for one in streams if one.spoken_s]
    cut = f"{all_of}; {counts['excused']} cut off with their node"
    crowd = f"{all_of}; {counts['turned away']} turned away in a crowd"
    p50, p99 = (percentile(spoken, share) if spoken else None for share in (0.5, 0.99))
    again = sum(one.tries > 1 for one in streams)
    return [
        Figure("streams that say something wrong", counts["wrong"], "", 0, all_of),
        Figure("streams cut off where nobody was hurt", counts["lost"], "", 0, cut),
        Figure("streams that no node took", counts["refused"], "", 0, crowd),
        Figure("streams whole and exact", _share(counts["exact"], len(streams)), "%"),
        Figure("streams that a second node took", again, ""),
        Figure("streams that were due and not begun", scene.traffic.held_back, "", 0),
        Figure("first text, p50", p50, "s"),
        Figure("first text, p99", p99, "s"),
    ]


def survived(streams: Sequence[Stream], faults: Sequence[Happened]) -> Figure:
    """Return how many streams were open while an engine died or stood still, and what became of them."""
    hurt = [one for one in faults if one.name in ENGINES]
    open_then = [
        one.verdict
        for one in streams
        if any(one.begun_s < bad.ended_s and one.ended_s > bad.begun_s for bad in hurt)
    ]
    says = f"{open_then.count('exact')} of them whole and exact"
    return Figure("streams open while an engine was hurt", len(open_then), "", None, says)


def _share(part: int, whole: int) -> float | None:
    return 100 * part / whole if whole else None


def _faults(day: Day) -> list[Figure]:
    unhealed = [one for one in day.faults if one.heals_s is None]
    heals = [one.heals_s for one in day.faults if one.heals_s is not None]
    worst = max(day.faults, key=lambda one: one.heals_s or 0.0, default=None)
    kinds = Counter(one.name for one in day.faults)
    says = ", ".join(f"{count} {name}" for name, count in sorted(kinds.items()))
    return [
        Figure("faults that did not heal", len(unhealed), "", 0, f"of {len(day.faults)}: {says}"),
        Figure("faults that could not be done", len(day.stuck), "", 0),
        Figure(
            "worst recovery", max(heals, default=0.0), "s", HEAL_MAX_S, worst.told if worst else ""
        ),
    ]


def broken(scene: Scene, day: Day) -> list[str]:
    """Return in words what should not have happened, the first of each kind of client."""
    bad = [f"{one.verdict}: {one.says}" for one in scene.traffic.streams if one.verdict in FAILURES]
    return [
        *([] if day.is_over else ["the day did not come to its end"]),
        *bad[:20],
        *[f"turn: {one}" for one in scene.people.ledger.failed if one][:20],
        *[f"denied: {one}" for one in scene.people.denials][:20],
        *[f"change: {one}" for one in scene.operators.failed],
        *[f"could not be done: {one}" for one in day.stuck],
        *[f"logged: {one}" for one in day.mistakes][:20],
    ]
