"""Light load on limits: just under the limit, a burst at two nodes, and a node whose share is
empty.
"""

from statistics import median
from typing import Final

from smg_chaos.gameday.lab.link_rules import LinkRule
from smg_chaos.gameday.limits.definition import Definer, Rule
from smg_chaos.gameday.limits.judge import Allowance, Amount
from smg_chaos.gameday.limits.report import failures, within
from smg_chaos.gameday.limits.scene import Scene, evenly, mostly
from smg_chaos.gameday.limits.story import ADMITTED, Record
from smg_chaos.statistics import Figure, percentile

_WINDOW_US: Final = 2_000_000
_AMOUNT: Final = 400
"""In 2 s: enough that what stands with four nodes is worth returning to the one that needs it."""
_SHARE: Final = 0.9
_BURST: Final = 40
_FEW: Final = 10
_FEW_WINDOW_US: Final = 5_000_000
_LINK_MS: Final = 2.0
_ROUND_S: Final = 2 * _LINK_MS / 1000
_WAIT_S: Final = 0.025
_LONELY_PER_S: Final = 8.0
_LONELY_AMOUNT: Final = 1000


async def just_under(scene: Scene, definer: Definer, seconds: float) -> list[Figure]:
    """Send nine tenths of the limit, to all alike and then 95 % to one; return how many were
    refused.
    """
    names = list(scene.cluster.names)
    await definer.begin(Rule(requests=f"{_AMOUNT}/2s"))
    since_us = scene.now_us()
    allowance = Allowance(_WINDOW_US, [Amount(_AMOUNT, since_us)])
    total = _SHARE * _AMOUNT * 1e6 / _WINDOW_US
    owner = await definer.owner()
    busy = next(name for name in names if name != owner)
    figures = []
    for name, rates, most in (
        ("0.9x even", evenly(names, total), 0.0),
        ("0.9x skewed", mostly(names, busy, total), 0.5),
    ):
        await scene.rate(rates)
        # Who asks for how much is known after a window or two.
        await scene.chapter(f"{name}, the first windows", 2 * _WINDOW_US / 1e6)
        chapter = await scene.chapter(name, seconds)
        record = (await scene.record(since_us)).of(chapter)
        figures.append(_refused(name, record, most))
        figures.append(within(name, record, allowance))
        figures.append(failures(name, record, scene.hurt, scene.stage.say))
    await scene.quiet()
    return figures


def _refused(name: str, record: Record, most_percent: float) -> Figure:
    refused, asked = record.refused(), len(record.answers)
    value = 100 * refused / max(1, asked)
    return Figure(f"{name}: refused", value, "%", most_percent, f"{refused} of {asked}")


async def burst(scene: Scene, definer: Definer) -> list[Figure]:
    """Send two nodes 20 requests each, at once, under a limit of 10: ten are admitted, in all."""
    await definer.begin(Rule(requests=f"{_FEW}/5s", standing=0.0))
    await scene.room(_FEW_WINDOW_US, _FEW_WINDOW_US)  # what was asked before is not of that window
    return await burst_of(scene, list(scene.cluster.names)[:2])


async def burst_of(scene: Scene, names: list[str]) -> list[Figure]:
    """Send these nodes 40 requests together, at once; return how many more than ten were admitted,
    and how many fewer.
    """
    since_us = scene.now_us()
    await scene.burst({name: _BURST // len(names) for name in names})
    await scene.quiet()
    record = await scene.record(since_us)
    arrived = sum(answer.serial in record.arrivals for answer in record.answers)
    says = f"{arrived} of {len(record.answers)} admitted"
    return [
        Figure(f"burst of {_BURST}, limit {_FEW}: too many", max(0, arrived - _FEW), "", 0, says),
        Figure(f"burst of {_BURST}, limit {_FEW}: too few", max(0, _FEW - arrived), "", 0, says),
    ]


async def waiting(scene: Scene, definer: Definer, seconds: float) -> list[Figure]:
    """Ask a node that has no rights, while the owner has, with 2 ms between the nodes; return the
    added latency.
    """
    link = {
        f"{one}>{other}": LinkRule(delay_ms=_LINK_MS)
        for one in scene.cluster.names
        for other in scene.cluster.names
        if one != other
    }
    scene.cluster.lab.set_rules(link)
    try:
        await definer.begin(Rule(requests=f"{_LONELY_AMOUNT}/10s", standing=0.0))
        owner = await definer.owner()
        lonely = next(name for name in scene.cluster.names if name != owner)
        took, refused = {}, 0
        for name in (owner, lonely):
            since_us = scene.now_us()
            await scene.rate({name: _LONELY_PER_S})
            await scene.chapter(f"empty share, asked of {name}", seconds)
            await scene.quiet()
            record = await scene.record(since_us)
            took[name] = [
                (one.got_us - one.sent_us) / 1e6 for one in record.answers if one.status == ADMITTED
            ]
            refused += record.refused()
    finally:
        scene.cluster.lab.set_rules({})
    known = took[owner] and took[lonely]
    more = percentile(took[lonely], 0.95) - median(took[owner]) if known else None
    says = f"{len(took[lonely])} answers of a node that is not the owner"
    return [
        Figure("share empty: an answer takes longer by, p95", more, "s", _ROUND_S + _WAIT_S, says),
        Figure("share empty: refused", refused, "", 0),
    ]
