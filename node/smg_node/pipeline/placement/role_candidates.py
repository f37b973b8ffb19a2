"""Role candidates: one model's candidates by role: regular workers, and prefill/decode pairs.

A model may have regular workers, which answer alone, and others of which it takes two: a prefill
worker computes the prompt, a decode worker draws the answer. Two form a pair if they hand over in
the same way, and share what they must share for that; pairs go before regular workers.

Workers that encode pictures stand beside them: they answer nobody, and a call takes them in addition to its worker or
pair (`encoder_selection`).

All filters apply to each half by itself. A pair can be had where both halves have a worker left.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from smg_node.core.journey import DROPPED_MAX
from smg_node.fleet.health.backpressure import NEVER
from smg_node.fleet.models.served_model import AnyModel
from smg_node.fleet.workers.pair_eligibility import Group, group_of
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.placement.candidates import (
    ZONE_LABEL,
    Candidates,
    ChoiceSet,
    candidates_of,
    choosables,
    spilled,
)
from smg_node.pipeline.placement.eligibility import Allowed, Refusing


class Partnered(msgspec.Struct, frozen=True):
    """Decode workers for one group's prefill workers: all, and those of each zone."""

    all: ChoiceSet
    zones: Mapping[str, ChoiceSet]

    def for_zone(self, zone: str, spill: float) -> ChoiceSet:
        """Return the decode workers to choose from for a prefill worker in `zone`: near ones while
        they have room.
        """
        near = self.zones.get(zone) if zone else None
        return self.all if near is None or spilled(near, spill) else near


class Pairs(msgspec.Struct, frozen=True):
    """Possible pairs now: prefill workers that have a partner, and the partners by group."""

    first: ChoiceSet
    near: ChoiceSet | None
    partners: Mapping[Group, Partnered]

    def choosable(self, spill: float) -> ChoiceSet:
        """Return the prefill workers to choose from; see `Candidates.choosable`."""
        near = self.near
        return self.first if near is None or spilled(near, spill) else near


class RoleCandidates(msgspec.Struct, frozen=True):
    """One model's candidates as of one version of the fleet, by role.

    `prefill` and `decode` are None where no worker is half of a pair; `pairs` where none can be had
    now. Without `fallback`, regular workers get nothing while there are others.
    """

    regular: Candidates
    prefill: Candidates | None = None
    decode: Candidates | None = None
    pairs: Pairs | None = None
    fallback: bool = True
    alone: Candidates | None = None
    """Those that may answer alone; None if nobody may."""
    until_s: float = NEVER
    """Until when it is so if no worker changes."""
    version: int = 0
    model: AnyModel | None = None
    """Of which version of the fleet and which model all of them are."""
    encode: Candidates | None = None
    """Those that encode pictures for the others; None where no worker does."""

    @property
    def open(self) -> bool:
        """Whether any worker or pair can be chosen now."""
        return self.pairs is not None or (self.alone is not None and self.alone.all is not None)

    @property
    def busy(self) -> bool:
        """Whether none can be chosen because all that could be are full."""
        if self.open:
            return False
        return (self.alone is not None and self.alone.sieved.busy) or self._pairs_busy()

    @property
    def strained(self) -> bool:
        """Whether all that can be chosen are overloaded."""
        first, second = self.prefill, self.decode
        if self.pairs is not None and first is not None and second is not None:
            return first.sieved.strained or second.sieved.strained
        return self.alone is not None and self.alone.sieved.strained

    @property
    def dropped(self) -> tuple[tuple[str, str], ...]:
        """Workers that cannot be chosen, each with the reason."""
        if self.prefill is None:
            return self.regular.dropped
        return tuple([one for stage in self._stages() for one in stage.dropped])[:DROPPED_MAX]

    def lack(self, name: str) -> str:
        """Return the text of what is missing where none can be chosen and none is full."""
        first, second = self.prefill, self.decode
        if self.open:
            return f"no worker that encodes pictures for {name!r} is ready"
        if first is None or second is None:
            return f"no worker of {name!r} is ready"
        prompts, answers = len(first.sieved.candidates), len(second.sieved.candidates)
        return (
            f"no pair of workers of {name!r} is ready: {prompts} for prompts, {answers} for answers"
        )

    def suits(self, fits: Allowed | None) -> bool:
        """Whether `fits` is true of every worker that can be chosen."""
        return fits is None or all(
            all(map(fits, stage.sieved.candidates)) for stage in self._stages()
        )

    def narrowed(self, now_s: float, refusing: Refusing, zone: str) -> "RoleCandidates":
        """Return the candidates of a call that may not go to workers that `refusing` has a reason against."""

        def narrow(stage: Candidates) -> Candidates:
            return stage.narrowed(now_s, refusing, zone)

        return self._each(narrow, zone)

    def only_alone(self) -> "RoleCandidates":
        """Return the candidates of a call that no pair can take."""
        return _stages(self.regular, encode=self.encode)

    def _pairs_busy(self) -> bool:
        first, second = self.prefill, self.decode
        if first is None or second is None:
            return False
        halves = (first.sieved, second.sieved)
        return any(half.busy for half in halves) and all(
            half.busy or half.candidates for half in halves
        )

    def _stages(self) -> Sequence[Candidates]:
        if self.prefill is None or self.decode is None:
            return (self.regular,)
        return (self.prefill, self.decode, self.regular)

    def _each(self, change: Callable[[Candidates], Candidates], zone: str) -> "RoleCandidates":
        regular = change(self.regular)
        if self.prefill is None or self.decode is None:
            return _stages(regular, fallback=self.fallback, encode=self.encode)
        first, second = change(self.prefill), change(self.decode)
        return _stages(
            regular, first, second, zone=zone, fallback=self.fallback, encode=self.encode
        )


def role_candidates_of(
    version: int,
    model: AnyModel,
    serving: Sequence[Worker],
    now_s: float,
    *,
    zone: str,
    fallback: bool,
    before: RoleCandidates | None,
) -> RoleCandidates:
    """Return the candidates for `model`; what did not change is taken over from the ones before."""

    def of_role(role: str, old: Candidates | None) -> Candidates:
        workers = [worker for worker in serving if worker.role == role]
        return candidates_of(version, model, workers, now_s, zone=zone, before=old)

    roles = {worker.role for worker in serving}
    encode: Candidates | None = None
    if "encode" in roles:
        encode = of_role("encode", before.encode if before is not None else None)
    if not roles & {"prefill", "decode"}:
        old = before.regular if before is not None else None
        alone = serving if encode is None else [one for one in serving if one.role == "regular"]
        regular = candidates_of(version, model, alone, now_s, zone=zone, before=old)
        return _stages(regular, fallback=fallback, encode=encode)
    regular = of_role("regular", before.regular if before is not None else None)
    first = of_role("prefill", before.prefill if before is not None else None)
    second = of_role("decode", before.decode if before is not None else None)
    return _stages(regular, first, second, zone=zone, fallback=fallback, encode=encode)


def _stages(
    regular: Candidates,
    first: Candidates | None = None,
    second: Candidates | None = None,
    *,
    zone: str = "",
    fallback: bool = True,
    encode: Candidates | None = None,
) -> RoleCandidates:
    """Combine candidates of all roles, and compute what every decision needs of them."""
    until_s = regular.sieved.until_s
    if encode is not None:
        until_s = min(until_s, encode.sieved.until_s)
    if first is None or second is None:
        return RoleCandidates(
            regular,
            fallback=fallback,
            alone=regular,
            until_s=until_s,
            version=regular.version,
            model=regular.model,
            encode=encode,
        )
    return RoleCandidates(
        regular,
        first,
        second,
        _pairs(first, second, zone),
        fallback,
        alone=regular if fallback else None,
        until_s=min(until_s, first.sieved.until_s, second.sieved.until_s),
        version=regular.version,
        model=regular.model,
        encode=encode,
    )


def _pairs(first: Candidates, second: Candidates, zone: str) -> Pairs | None:
    partners: dict[Group, list[Worker]] = {}
    for worker in second.sieved.candidates:
        group = group_of(worker)
        if group is not None:
            partners.setdefault(group, []).append(worker)
    able = [worker for worker in first.sieved.candidates if group_of(worker) in partners]
    everybody, near = choosables(able, first.known, first.ring, zone)
    if everybody is None:
        return None
    wanted = {group_of(worker) for worker in able}
    return Pairs(
        everybody,
        near,
        {
            group: _partnered(workers, second)
            for group, workers in partners.items()
            if group in wanted
        },
    )


def _partnered(workers: Sequence[Worker], stage: Candidates) -> Partnered:
    everybody, _ = choosables(workers, stage.known, stage.ring, "")
    assert everybody is not None, "a group has somebody"
    zones: dict[str, ChoiceSet] = {}
    for zone in sorted({worker.labels.get(ZONE_LABEL, "") for worker in workers} - {""}):
        _, near = choosables(workers, stage.known, stage.ring, zone)
        if near is not None:
            zones[zone] = near
    return Partnered(everybody, zones)
