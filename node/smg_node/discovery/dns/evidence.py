"""Evidence of endpoints that a name no longer has: what counts as gone, over many answers. Pure.

Some servers show a part of their addresses in turn, caches have older answers than servers, and secondaries lag. So an
endpoint that an answer lacks is gone only after it was missing in 3 answers **and** for 15 seconds; at once if probers
call it down. An answer with nothing at all is shown as that, at once: whoever takes a view has a longer doubt about it
(`empty_confirm_s`), and what was there before is remembered meanwhile.

Of a host with addresses of both families one family is there, so that each engine is there once. The other one comes in
when nothing of the first is left.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from smg_node.config.worker_url import WorkerUrl
from smg_node.discovery.dns.answers import RECORDS_MAX
from smg_node.discovery.dns.names import Round, Seen
from smg_node.discovery.sighting import Endpoint, Sighting, Unusable, View

MISSES: Final = 3
MISSING_MS: Final = 15_000
_UNKNOWN: Final = ""
"""The host of an endpoint that was registered before this node ever asked."""


@dataclass(slots=True)
class _Kept:
    seen: Seen
    misses: int = 0
    missing_since_ms: int = 0

    @property
    def is_v6(self) -> bool:
        return ":" in self.seen.sighting.url.host


class Evidence:
    """What a name has, as far as its answers prove it. `down` says whether probers call an endpoint down."""

    def __init__(
        self,
        down: Callable[[Endpoint], bool],
        *,
        known: Mapping[Endpoint, WorkerUrl] | None = None,
    ) -> None:
        """Take over what is `known` of this source already: it is not gone before answers have shown that."""
        self._down = down
        self._kept: dict[Endpoint, _Kept] = {
            endpoint: _Kept(Seen(Sighting(url), _UNKNOWN))
            for endpoint, url in sorted((known or {}).items())
        }
        self._view = View({})

    @property
    def view(self) -> View:
        """What was shown last."""
        return self._view

    def answered(self, round_: Round, *, now_ms: int) -> View:
        """Take a round of answers; return the view after it."""
        for endpoint in [one for one in self._kept if one not in round_.seen]:
            if self._is_gone(endpoint, round_, now_ms):
                del self._kept[endpoint]
        left_out = self._take(round_.seen)
        shown = round_.seen or round_.unanswered
        self._view = View(
            {name: kept.seen.sighting for name, kept in self._kept.items()} if shown else {},
            whole_ms=now_ms,
            unusable=(*round_.unusable, *left_out),
        )
        return self._view

    def unanswered(self, why: str, *, now_ms: int) -> View:
        """Take that nobody answered: all is kept, and the view says since when."""
        before = self._view
        self._view = View(
            before.sightings,
            whole_ms=before.whole_ms,
            trouble=why,
            failing_since_ms=before.failing_since_ms or now_ms,
            unusable=before.unusable,
        )
        return self._view

    def _is_gone(self, endpoint: Endpoint, round_: Round, now_ms: int) -> bool:
        kept = self._kept[endpoint]
        if kept.seen.host in round_.unanswered:
            return False  # nobody said that it is missing
        if kept.seen.host == _UNKNOWN and round_.unanswered:
            return False
        if kept.misses == 0:
            kept.missing_since_ms = now_ms
        kept.misses += 1
        if self._down(endpoint):
            return True
        return kept.misses >= MISSES and now_ms - kept.missing_since_ms >= MISSING_MS

    def _take(self, seen: Mapping[Endpoint, Seen]) -> list[Unusable]:
        """Take what an answer has; return what there is no room for."""
        families = {
            kept.seen.host: kept.is_v6 for name, kept in self._kept.items() if name not in seen
        }
        left_out = 0
        for endpoint, one in seen.items():
            other = families.get(one.host, ":" in one.sighting.url.host)
            if endpoint in self._kept:
                self._kept[endpoint] = _Kept(one)
            elif other != (":" in one.sighting.url.host):
                continue
            elif len(self._kept) < RECORDS_MAX:
                self._kept[endpoint] = _Kept(one)
            else:
                left_out += 1
        return [Unusable("", f"{left_out} endpoints beyond {RECORDS_MAX}")] if left_out else []
