"""Puts together what keeps history, out of settings."""

from collections.abc import Callable, Sequence
from typing import Final

from smg_node.config.plain import Settings
from smg_node.core.ports import Clock, Rng
from smg_node.history.health import StoreHealth
from smg_node.history.keeping import Keeping
from smg_node.history.opening import open_history
from smg_node.history.spool import Spool, SpoolLimits
from smg_node.history.spool_format import SALT_BYTES
from smg_node.history.sweeper import Sweeper
from smg_node.telemetry import store_metrics as declared
from smg_node.telemetry.metrics import Meters

_MARGIN_S: Final = 1.0
"""Drivers are loaded before anything is connected to."""


def build_keeping(
    settings: Settings,
    *,
    clock: Clock,
    rng: Rng,
    meters: Meters,
    living: Callable[[], Sequence[str]],
) -> Keeping:
    """Return it; the store is opened when it runs."""
    storage = settings.storage

    def now_us() -> int:
        return clock.now_ms() * 1_000

    health = StoreHealth(
        now_s=clock.monotonic_s,
        rng=rng,
        slow_s=storage.slow_s,
        changed=lambda: keeping.store_changed(),
    )
    spool = Spool(
        settings.data_dir / "spool" / settings.name,
        # In the order in which processes begin, so that what they left is written in that order.
        f"{clock.now_ms():013d}-{rng.getrandbits(32):08x}",
        limits=SpoolLimits(storage.spool.turns_max, storage.spool.max_bytes),
        now_us=now_us,
        salt=lambda: rng.getrandbits(8 * SALT_BYTES).to_bytes(SALT_BYTES, "big"),
    )
    keeping = Keeping(
        lambda: open_history(settings, now_us),
        kind=storage.kind,
        health=health,
        spool=spool,
        strict=storage.durability == "strict",
        now_s=clock.monotonic_s,
        observe=meters.store_operation,
        wait_s=storage.timeout_s + storage.pool.connect_s + _MARGIN_S,
    )
    sweeper = Sweeper(
        keeping,
        settings.name,
        living=living,
        now_us=now_us,
        now_s=clock.monotonic_s,
        every_s=settings.retention.sweep_s,
    )
    keeping.also(sweeper.run)
    _watch(meters, health, spool, sweeper)
    return keeping


def _watch(meters: Meters, health: StoreHealth, spool: Spool, sweeper: Sweeper) -> None:
    """Let scrapes read how the store is."""
    meters.watch(declared.STORE_UP, lambda: {(): not health.away})
    meters.watch(declared.STORE_SPOOLED, lambda: {(): spool.spooled})
    meters.watch(declared.STORE_SPOOL_TURNS, lambda: {(): spool.turns})
    meters.watch(declared.STORE_SPOOL_BYTES, lambda: {(): spool.bytes})
    meters.watch(declared.STORE_SPOOL_OLDEST_SECONDS, lambda: {(): spool.oldest_s()})
    meters.watch(declared.STORE_SPOOL_REFUSED, lambda: {(): spool.refused})
    meters.watch(declared.STORE_DEAD_TURNS, lambda: {(): spool.dead})
    meters.watch(declared.STORE_PURGED, lambda: {(): sweeper.purged})
    meters.watch(declared.STORE_ROWS, lambda: _rows(sweeper))


def _rows(sweeper: Sweeper) -> dict[tuple[str, ...], float]:
    seen = sweeper.figures
    rows = {
        "conversations": seen.conversations,
        "items": seen.items,
        "responses": seen.responses,
    }
    return {(table,): count for table, count in rows.items() if count >= 0}
