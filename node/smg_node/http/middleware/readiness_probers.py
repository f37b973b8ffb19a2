"""Readiness probers: load balancers that poll readiness, and the answer each of them got last."""

from typing import Final

from smg_node.http.ports.drain import Prober

PROBERS_MAX: Final = 32
"""The youngest count: an operator who looks by hand must not push out what asks each second."""
FRESH_S: Final = 60.0
"""No balancer asks less often."""
_AGENT_CHARACTERS_MAX: Final = 80


class Probers:
    """Recent probers, by address and user agent."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], tuple[float, bool]] = {}
        """When and what, the latest last."""

    def note(self, address: str, agent: str, now_s: float, *, ready: bool) -> None:
        """Record the answer that a prober got just now."""
        key = (address, agent[:_AGENT_CHARACTERS_MAX])
        self._told.pop(key, None)
        self._told[key] = (now_s, ready)
        if len(self._told) > PROBERS_MAX:
            del self._told[next(iter(self._told))]

    def views(self, now_s: float) -> tuple[Prober, ...]:
        """Return the probers of the last minute, the latest last."""
        return tuple(
            Prober(address, agent, now_s - told_s, ready)
            for (address, agent), (told_s, ready) in self._told.items()
            if now_s - told_s <= FRESH_S
        )
