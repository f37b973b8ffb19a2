"""Shared verdicts: health of workers as the probing nodes report it, read out of replicated state.

Which members probe a worker follows from which are alive. When a member comes or goes, that is
computed again for the workers concerned, a slice at a time, because there may be thousands and
requests are being served meanwhile.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from smg_node.cluster.workers.shared_port import SharedPort
from smg_node.fleet.health.peer_verdicts import Sight

ALL_UP_TO: Final = 3
"""Of so few nodes every one looks at every worker."""
VERDICT_MIN_MS: Final = 15_000
"""A verdict lasts at least this long: a prober may be busy fetching a tokenizer."""
_DRAWS_MAX: Final = 2_000
"""So many draws, of a node for a worker, in one turn of the loop: about 3 ms."""


class SharedVerdicts:
    """The other nodes' verdicts, see `fleet.health.peer_verdicts.PeerVerdicts`. `heard` is called
    with the workers that changed.
    """

    def __init__(self, shared: SharedPort, *, heard: Callable[[Iterable[str]], None]) -> None:
        self.me = shared.name
        self._shared = shared
        self._heard = heard
        self._living = tuple(shared.living())
        self._probers: dict[str, tuple[str, ...]] = {}
        self._doubtful: deque[str] = deque()

    # ── What the fleet asks ──────────────────────────────────────────────────

    def probers(self, worker_id: str) -> Sequence[str]:
        """See `PeerVerdicts`."""
        found = self._probers.get(worker_id)
        if found is None:
            found = self._probers[worker_id] = self._drawn(worker_id)
        return found

    def sights(self, worker_id: str) -> Sequence[Sight]:
        """See `PeerVerdicts`."""
        return [
            Sight(said.node, said.up, said.reason, said.age_ms)
            for said in self._shared.verdicts.of(worker_id)
        ]

    def tell(self, worker_id: str, *, up: bool, reason: str, lasts_s: float) -> None:
        """See `PeerVerdicts`."""
        ttl_ms = max(VERDICT_MIN_MS, round(1000 * lasts_s))
        self._shared.verdicts.publish(worker_id, up=up, reason=reason, ttl_ms=ttl_ms)

    def fall_silent(self, worker_id: str) -> None:
        """See `PeerVerdicts`."""
        self._shared.verdicts.forget(worker_id)

    # ── Who comes and goes ───────────────────────────────────────────────────

    def forget(self, worker_id: str) -> None:
        """Drop what was computed for a removed worker."""
        self._probers.pop(worker_id, None)

    async def catch_up(self) -> None:
        """Compute the probers again where they may have changed, and notify the fleet."""
        self._note_members()
        slice_max = max(1, _DRAWS_MAX // max(1, len(self._living)))
        while self._doubtful:
            some = [self._doubtful.popleft() for _ in range(min(slice_max, len(self._doubtful)))]
            changed = [worker_id for worker_id in some if self._draw_again(worker_id)]
            if changed:
                self._heard(changed)
            await asyncio.sleep(0)
            self._note_members()

    def _note_members(self) -> None:
        living = tuple(self._shared.living())
        if living == self._living:
            return
        gone = set(self._living) - set(living)
        came = set(living) - set(self._living)
        few = min(len(living), len(self._living)) <= ALL_UP_TO
        self._living = living
        # What a dead member looked at is more urgent than the share of a new one.
        orphans = [one for one, names in self._probers.items() if not gone.isdisjoint(names)]
        others = [one for one in self._probers if came or few]
        self._doubtful = deque(dict.fromkeys([*orphans, *self._doubtful, *others]))

    def _draw_again(self, worker_id: str) -> bool:
        before = self._probers.get(worker_id)
        if before is None:
            return False
        self._probers[worker_id] = drawn = self._drawn(worker_id)
        return drawn != before

    def _drawn(self, worker_id: str) -> tuple[str, ...]:
        from smg_mesh.shared import probers

        nodes = [(name, "") for name in self._living] or [(self.me, "")]
        return probers(worker_id, nodes, all_up_to=ALL_UP_TO)
