"""Scenarios of gameday: for each the number of nodes, seconds and rounds, in full and in a minute
version.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from smg_chaos.gameday.history.cut_off import unwritten
from smg_chaos.gameday.history.database_server import PLACE
from smg_chaos.gameday.history.scenario import history_on
from smg_chaos.gameday.limits.scenario import limits
from smg_chaos.gameday.limits.scene import ENGINES, PLACES
from smg_chaos.gameday.rolling.scenario import FLAGS as ROLLING_FLAGS
from smg_chaos.gameday.rolling.scenario import PLACES as ROLLING_PLACES
from smg_chaos.gameday.rolling.scenario import rolling
from smg_chaos.gameday.scenes import changes, crashes, failover, healing, idle
from smg_chaos.gameday.scenes import network_faults as weather
from smg_chaos.gameday.scenes import worker_registry as registry
from smg_chaos.gameday.stage import Play
from smg_chaos.gameday.ten.scenario import FLAGS as TEN_FLAGS
from smg_chaos.gameday.ten.scenario import PLACES as TEN_PLACES
from smg_chaos.gameday.ten.scenario import ten
from smg_chaos.gameday.whole.availability import KINDS, availability
from smg_chaos.gameday.whole.scenario import whole
from smg_chaos.gameday.whole.scene import PLACES as WHOLE_PLACES

ALL: Final = "all"


@dataclass(frozen=True, slots=True)
class Size:
    """Number of nodes, seconds and rounds; 0 where that means nothing."""

    nodes: int
    seconds: float = 0.0
    rounds: int = 0


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario. `quick` is its minute version, `flags` are for our own nodes.

    `places` are names of more places in the lab, where no node lives.
    """

    name: str
    says: str
    play: Play
    full: Size
    quick: Size
    flags: tuple[str, ...] = ()
    places: tuple[str, ...] = ()


SCENARIOS: Final[Mapping[str, Scenario]] = {
    one.name: one
    for one in (
        Scenario(
            "crash", "kill -9, with restarts", crashes.crash, Size(10, rounds=20), Size(5, rounds=5)
        ),
        Scenario(
            "leave", "SIGTERM, with restarts", crashes.leave, Size(10, rounds=10), Size(5, rounds=3)
        ),
        Scenario(
            "restart",
            "killed and back at once, same name, new address",
            crashes.restart,
            Size(10, rounds=10),
            Size(5, rounds=3),
        ),
        Scenario("loss", "20 %, then 40 % loss", weather.loss, Size(10, 120.0), Size(5, 20.0)),
        Scenario(
            "stall", "a quarter stalls ≤ 1.5 s", weather.stall, Size(12, 120.0), Size(5, 30.0)
        ),
        Scenario(
            "long-stall",
            "a quarter stalls ≤ 4 s; ours with profile lan-stable",
            weather.long_stall,
            Size(12, 120.0),
            Size(5, 40.0),
            ("--mesh.profile", "lan-stable"),
        ),
        Scenario(
            "pause", "a sixth paused 8 s of 12", weather.pause, Size(24, 120.0), Size(6, 36.0)
        ),
        Scenario(
            "sick",
            "one member loses 80 % one way, then the other",
            weather.sick,
            Size(10, 120.0),
            Size(5, 40.0),
        ),
        Scenario(
            "partition",
            "half and half, then healed",
            healing.partition,
            Size(10, 60.0, 3),
            Size(6, 20.0, 1),
        ),
        Scenario("join", "all at once through one seed", healing.join, Size(40), Size(12)),
        Scenario("late-seed", "the seed comes last", healing.late_seed, Size(3), Size(3)),
        Scenario(
            "workers",
            "added, removed, and outliving who registered them",
            registry.workers,
            Size(3, 70.0, 30),
            Size(3, 12.0, 5),
            ("--readiness.min-workers", "0"),
        ),
        Scenario(
            "changes",
            "200 requests/s, while workers and settings change and every node restarts",
            changes.changes,
            Size(3, 600.0),
            Size(3, 45.0),
        ),
        Scenario(
            "failover",
            "workers hurt under streams: kill -9, stall, removal, and nobody left",
            failover.failover,
            Size(3, rounds=100),
            Size(3, rounds=5),
            failover.FLAGS,
        ),
        Scenario(
            "limits",
            "ten times a limit, hurt meanwhile, and counted at the engines",
            limits,
            Size(5, 12.0),
            Size(5, 3.0),
            places=PLACES,
        ),
        Scenario(
            "history",
            "chats on PostgreSQL, then on Redis, which is killed and comes back, and a node with it",
            history_on("postgresql", "redis"),
            Size(3, 60.0),
            Size(3, 8.0),
            places=(PLACE,),
        ),
        Scenario(
            "unwritten",
            "a turn on the disk of a node that is cut off, asked for at the others when the store is back",
            unwritten,
            Size(3, rounds=20),
            Size(3, rounds=3),
            places=(PLACE, ENGINES),
        ),
        Scenario(
            "rolling",
            "every node restarted in turn under streams, drained or only told to stop",
            rolling,
            Size(5, 10.0, 2),
            Size(3, 5.0, 1),
            ROLLING_FLAGS,
            ROLLING_PLACES,
        ),
        Scenario(
            "ten",
            "ten small stories of joins, deaths, leaves, a limit, a conversation and affinity",
            ten,
            Size(3, 25.0),
            Size(3, 8.0),
            TEN_FLAGS,
            TEN_PLACES,
        ),
        Scenario(
            "availability",
            f"streams through a balancer while {', '.join(KINDS)} happen, ours or the reference",
            availability,
            Size(3, 300.0),
            Size(3, 60.0),
            places=PLACES,
        ),
        Scenario(
            "whole",
            "a day of use with every kind of fault",
            whole,
            Size(5, 600.0),
            Size(3, 60.0),
            places=WHOLE_PLACES,
        ),
        Scenario("idle", "what doing nothing costs", idle.idle, Size(10, 60.0), Size(5, 15.0)),
    )
}
