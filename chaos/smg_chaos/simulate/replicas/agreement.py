"""Agreement of replicas: conditions on shared state once all is healed and quiet.

Every node holds the same, piece by piece; what counts is the largest surviving write of every cell, and
nothing else; a worker exists if and only if a source spoke for it later than its last removal; the
conflicts that are shown are exactly the writes that did not know of each other.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from smg_chaos.simulate.base.virtual_clock import MS
from smg_chaos.simulate.hosts.state_write import Cell, Write
from smg_chaos.simulate.replicas.checkers import is_old_removal
from smg_chaos.simulate.replicas.recorded_views import LOAD, SETTINGS, STICKY
from smg_chaos.simulate.replicas.replica_life import ReplicaLife
from smg_chaos.simulate.replicas.shared_world import Commons
from smg_chaos.simulate.replicas.state_events import REGISTER_TTL_MS, read_published
from smg_chaos.simulate.replicas.write_ledger import WORKERS

SUBJECTS_MAX: Final = 12
"""How many differences a report lists."""
_SPACES: Final = (WORKERS, SETTINGS)


def differences(commons: Commons, *, leftovers: bool = False) -> list[str]:
    """Return what is not as it must be; empty: all is well.

    `leftovers`: some nodes may hold entries of an earlier epoch that others lack, and that count for nothing.
    """
    lives = commons.lives()
    wrong = _pieces_differ(lives)
    if not leftovers and not commons.wild:
        wrong += _sums_differ(lives)
    if not commons.watchful:
        return wrong[:SUBJECTS_MAX]
    expected = commons.ledger.expected()
    workers = expected_workers(expected)
    for life in lives:
        if not life.arrival.held:
            wrong.append(f"{life.node.host.label} is still arriving")
        wrong += _cells_differ(commons, life, expected)
        wrong += _workers_differ(commons, life, workers, expected)
        wrong += _settings_differ(commons, life, expected)
        wrong += _conflicts_differ(commons, life, expected)
    return wrong[:SUBJECTS_MAX]


def sums_agree(lives: list[ReplicaLife]) -> bool:
    """Return whether the same counts for all; only to be asked when digests are equal."""
    return not _sums_differ(lives)


def _pieces_differ(lives: list[ReplicaLife]) -> list[str]:
    """Compare the pieces of all nodes with those of the first."""
    wrong: list[str] = []
    if not lives:
        return wrong
    first, *others = lives
    pieces = _pieces(first)
    for life in others:
        label = life.node.host.label
        here = _pieces(life)
        names = [name for name in sorted({*pieces, *here}) if pieces.get(name) != here.get(name)]
        for name in names:
            told = f"{pieces.get(name)} and {here.get(name)}"
            wrong.append(f"{first.node.host.label} and {label} differ in {name}: {told}")
        if life.replica.digest() != first.replica.digest():
            wrong.append(f"{label} and {first.node.host.label} have different digests")
    return wrong


def _sums_differ(lives: list[ReplicaLife]) -> list[str]:
    sums = [_sums(life) for life in lives]
    return [
        f"{life.node.host.label} sums up {found}, and {lives[0].node.host.label} {sums[0]}"
        for life, found in zip(lives, sums, strict=True)
        if found != sums[0]
    ]


def _sums(life: ReplicaLife) -> dict[str, tuple[str, int]]:
    return {name: (one.digest, one.entries) for name, one in life.replica.state().items()}


def _pieces(life: ReplicaLife) -> dict[str, tuple[int, str]]:
    held = life.replica.holdings(full=False)
    return {piece.name: (piece.epoch, piece.digest.hex()) for piece in held}


# ── Cells ────────────────────────────────────────────────────────────────────


def _cells_differ(commons: Commons, life: ReplicaLife, expected: Mapping[Cell, Write]) -> list[str]:
    wrong: list[str] = []
    label, keep_ms = life.node.host.label, commons.options.removed_keep_ms
    for cell, write in expected.items():
        if commons.doubtful(cell):
            continue
        now = life.views.latest(cell)
        if now is not None and (now[0], now[2]) == (write.hlc, write.value):
            continue
        if is_old_removal(write, life.wall_ms(), keep_ms) and (now is None or now[2] is None):
            continue
        if commons.ledger.is_beaten(write) or commons.ledger.is_void(write):
            continue
        wrong.append(f"{label} has {now} for {cell}, where {write} must count")
    for name in _SPACES:
        wrong += [
            f"{label} has {name}/{held.key}, of which no writer is left"
            for held in life.views.space(name).items()
            if (name, held.key) not in expected
        ]
    return wrong


# ── Views ────────────────────────────────────────────────────────────────────


def _beaten(write: Write, expected: Mapping[Cell, Write]) -> bool:
    """Return whether the worker that a write is about was removed later, and that must count."""
    removal = expected.get((WORKERS, write.cell[1].partition("/")[0]))
    return removal is not None and removal.hlc >= write.hlc


def expected_workers(expected: Mapping[Cell, Write]) -> dict[str, bool]:
    """Return the workers that must exist, and whether each is draining."""
    workers: dict[str, bool] = {}
    draining: dict[str, bool] = {}
    for (name, key), write in expected.items():
        worker, _, part = key.partition("/")
        if name != WORKERS or not part or write.value is None or _beaten(write, expected):
            continue
        said = msgspec.msgpack.decode(write.value)
        if part == "drain":
            draining[worker] = said["on"]
        elif part != "patch" and not said.get("withheld", False):
            workers[worker] = False
    return {worker: draining.get(worker, False) for worker in sorted(workers)}


def _workers_differ(
    commons: Commons,
    life: ReplicaLife,
    workers: Mapping[str, bool],
    expected: Mapping[Cell, Write],
) -> list[str]:
    label = life.node.host.label
    # Where a removal was lost with its last holder, what it took with it may be gone or not.
    half = {key.partition("/")[0] for name, key in commons.ledger.lost if name == WORKERS}
    half |= {key.partition("/")[0] for name, key in expected if commons.doubtful((name, key))}
    workers = {worker: workers[worker] for worker in workers if worker not in half}
    found = {
        record.id: record.draining
        for record in life.views.workers.records()
        if record.id not in half
    }
    wrong = [f"{label} does not have worker {one}" for one in workers if one not in found]
    wrong += [f"{label} has worker {one}, which was removed" for one in found if one not in workers]
    return wrong + [
        f"{label} has worker {one} {'draining' if found[one] else 'not draining'}"
        for one in workers
        if one in found and found[one] != workers[one]
    ]


def _settings_differ(
    commons: Commons, life: ReplicaLife, expected: Mapping[Cell, Write]
) -> list[str]:
    label = life.node.host.label
    wrong: list[str] = []
    for (name, key), write in expected.items():
        if name != SETTINGS or commons.doubtful((name, key)):
            continue
        found = life.views.settings.get(key)
        wanted = None if write.value is None else msgspec.msgpack.decode(write.value)
        value = None if found is None else found.value
        if value != wanted:
            wrong.append(f"{label} shows {value!r:.60} for setting {key}, not {wanted!r:.60}")
    return wrong


# ── Conflicts ────────────────────────────────────────────────────────────────


def _conflicts_differ(
    commons: Commons, life: ReplicaLife, expected: Mapping[Cell, Write]
) -> list[str]:
    label = life.node.host.label
    wrong: list[str] = []
    for cell in expected:
        if cell[0] == STICKY or commons.uncertain(cell) or commons.ledger.is_beaten(expected[cell]):
            continue
        shown, wanted = _shown(life, cell), concurrent(commons, cell)
        if shown != wanted:
            wrong.append(f"{label} shows {shown} as conflicts of {cell}, not {wanted}")
    return wrong


def _shown(life: ReplicaLife, cell: Cell) -> list[int]:
    """Return the times of the writes that are shown as conflicts, newest first."""
    held = life.views.space(cell[0]).conflicts(cell[1])
    return sorted({one.entry.hlc for one in held}, reverse=True)


def concurrent(commons: Commons, cell: Cell) -> list[int]:
    """Return the times of the writes that did not know of the winner, nor any write of them."""
    written = list(commons.ledger.writes(cell))
    latest: dict[str, Write] = {}
    for write in written:
        known = latest.get(write.owner)
        if known is None or known.order < write.order:
            latest[write.owner] = write
    winner = max(latest.values(), key=lambda write: write.order)
    return sorted(
        {
            write.hlc
            for write in latest.values()
            if write is not winner
            and not any(one.hlc > write.hlc and one.seen >= write.hlc for one in written)
        },
        reverse=True,
    )


# ── Registers ────────────────────────────────────────────────────────────────


def registers_differ(commons: Commons, *, since_us: int) -> list[str]:
    """Return where a living node's registers are not what it published since then.

    Each of them is said by rumor alone, again and again: a node may have missed the last time, not
    all. What a dead node said lasts for its time where no node knew it alive, as for a node that
    began later.
    """
    lives = commons.lives()
    living = {life.name for life in lives}
    outlived_us = commons.world.agenda.now_us - REGISTER_TTL_MS * MS
    wanted = sorted((life.name, key) for life in lives for key in life.published)
    wrong: list[str] = []
    for life in lives:
        found = [
            (one.owner, said.key)
            for one in life.views.registers.items(LOAD)
            if (said := read_published(one.content)).at_us >= since_us
        ]
        label = life.node.host.label
        wrong += [f"{label} lacks register {one}" for one in wanted if one not in found]
        every = sum(
            one.owner in living or read_published(one.content).at_us < outlived_us
            for one in life.views.registers.items(LOAD)
        )
        if every > len(wanted):
            wrong.append(f"{label} has {every} registers, where {len(wanted)} are published")
    return wrong[:SUBJECTS_MAX]
