"""Sticky sessions for operators: shows where a routing key is bound, and removes the binding."""

import re
from collections.abc import Callable
from typing import Final

from smg_node.cluster.workers.shared_port import StickyPort
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.http.ports.shared_state import SessionView
from smg_node.routing.routing_keys import sticky_id

_ID: Final = re.compile(r"[0-9a-f]{16}", re.ASCII)


class Sessions:
    """The keys with a written binding; all others go where the hash ring says."""

    def __init__(self, sticky: StickyPort, now_ms: Callable[[], int]) -> None:
        self._sticky = sticky
        self._now_ms = now_ms

    def session(self, key: str, *, model: str, tenant: str) -> SessionView:
        """Return the binding of a key, by its name and model, or by its id.

        NOT_FOUND `session_not_found` where nothing is written down: the ring decides, or the key
        was not used yet.
        """
        found = None
        ids = [sticky_id(key, model=model, tenant=tenant), *([key] if _ID.fullmatch(key) else [])]
        for session_id in ids:
            found = self._sticky.row(session_id)
            if found is not None:
                break
        if found is None:
            raise SmgError(
                ErrorKind.NOT_FOUND,
                f"no placement is written down for the routing key {key[:64]!r}",
                code="session_not_found",
            )
        now_ms = self._now_ms()
        return SessionView(
            id=session_id,
            worker=found.worker,
            why=found.why,
            node=found.node,
            age_ms=max(0, now_ms - found.time_ms),
            expires_ms=max(0, found.expires_ms - now_ms),
        )

    def end_session(self, key: str, *, model: str, tenant: str) -> SessionView:
        """Remove it on every node, and return what it was; the next request is placed anew."""
        view = self.session(key, model=model, tenant=tenant)
        self._sticky.release(view.id)
        return view
