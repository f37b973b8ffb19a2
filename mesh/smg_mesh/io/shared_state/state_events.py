"""State events for operators: that the cluster's state is here, and that a document is full."""

import logging
from collections.abc import Callable, Mapping
from typing import Final

from smg_mesh.io.shared_state.state_interface import Gossip
from smg_mesh.sync.replica import NamespaceState

FULL_AGAIN_MS: Final = 3_600_000
"""A document that stays full is an event once an hour."""
_SHOWN: Final = ("workers", "settings", "keys", "audit", "sticky")

_log: Final = logging.getLogger("smg_mesh.shared")


class StateNews:
    """Reporter of state events to `gossip`, or only to the log where there is none."""

    def __init__(self, *, now_ms: Callable[[], int]) -> None:
        self.gossip: Gossip | None = None
        self._now_ms: Final = now_ms
        self._full_ms: dict[str, int] = {}

    def full(self, document: str) -> None:
        """Say that a document takes no new keys."""
        now_ms = self._now_ms()
        said_ms = self._full_ms.get(document)
        if said_ms is not None and now_ms - said_ms < FULL_AGAIN_MS:
            return
        self._full_ms[document] = now_ms
        text = f"the document {document} of shared state is full: new keys in it are refused"
        self._report("document_full", text, {"document": document})

    def arrived(self, took_ms: int, state: Mapping[str, NamespaceState]) -> None:
        """Say what this node holds now that it holds what the cluster does."""
        entries = {kind: state[kind].entries for kind in _SHOWN if state[kind].entries}
        held = ", ".join(f"{count} of {kind}" for kind, count in entries.items()) or "nothing yet"
        text = f"this node holds the cluster's state after {took_ms / 1000:.1f} s: {held}"
        self._report("state_joined", text, {"ms": took_ms, **entries})

    def _report(self, kind: str, text: str, detail: Mapping[str, str | int]) -> None:
        if self.gossip is not None:
            self.gossip.happened(kind, text, detail)
        else:
            _log.info("%s", text, extra={"fields": {"event": kind, **detail}})
