"""Thread owners: maps the tag in a thread's id to its node, where nodes share no store.

A node that is dead or has left still holds its threads, so its tag stays known, also when the
cluster has forgotten it and when this node is restarted: names are noted in a file, one a line. The
member list is read only for a tag that is not known yet, and at most once a second, because clients
may ask for invented ids too.
"""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Final

from smg_node.history.peers.peer_interface import Peers
from smg_storage.ids import holder_tag

LOOK_S: Final = 1.0
KNOWN_MAX: Final = 4_096
"""Nodes that are remembered; the oldest is forgotten for one more."""
_NOTES_BYTES_MAX: Final = 1 << 20

_log: Final = logging.getLogger("smg_node.history")


class ThreadOwners:
    """Nodes of a cluster, this one among them, by their tags. `notes` is the file of names."""

    def __init__(
        self, name: str, peers: Peers, *, now_s: Callable[[], float], notes: Path | None = None
    ) -> None:
        self.name: Final = name
        self.tag: Final = holder_tag(name)
        """What the threads begin with that this node holds."""
        self._peers: Final = peers
        self._now_s: Final = now_s
        self._names: Final[dict[str, str]] = {}
        self._look_s = float("-inf")
        self._told = False
        self._alike: Final[dict[str, None]] = {}
        self._notes: Final = notes
        self._noted: frozenset[str] = frozenset()
        self._read()

    def elsewhere(self, tag: str) -> str:
        """Return the name of the other node that has this tag; "" if it is this node's or unknown."""
        if not tag or tag == self.tag:
            return ""
        return self._names.get(tag) or self._look(tag)

    def knows(self, tag: str) -> bool:
        """Return whether it is the tag of a node that is known, or of this one."""
        return tag == self.tag or bool(self.elsewhere(tag))

    @property
    def alike(self) -> Sequence[str]:
        """Nodes whose tags are equal to another one's: their threads cannot be told apart."""
        return tuple(self._alike)

    def others(self) -> Mapping[str, str]:
        """Return the other nodes and their state: alive, suspect, dead or left."""
        found = self._peers.known()
        if found and not self._told:
            self._told = True
            _log.warning(
                "history is on each node by itself: while one is away so are its threads; share one with --store"
            )
        for name in found:
            self._remember(name)
        if not self._noted.issuperset(found):
            self._write()
        return found

    def home_of_key(self, tenant: str, key: str) -> str:
        """Return the other node that owns a client's idempotency key; "" if this one does.

        A node that left owns no keys any more, one that died does.
        """
        here = [name for name, state in self.others().items() if state != "left"]
        drawn = max([*here, self.name], key=lambda name: (_draw(tenant, key, name), name))
        return "" if drawn == self.name else drawn

    def _look(self, tag: str) -> str:
        now_s = self._now_s()
        if now_s < self._look_s:
            return ""
        self._look_s = now_s + LOOK_S
        self.others()
        return self._names.get(tag, "")

    def _remember(self, name: str) -> None:
        tag = holder_tag(name)
        if tag == self.tag or self._names.get(tag, name) != name:
            self._alike[name] = None
            return
        if tag not in self._names and len(self._names) >= KNOWN_MAX:
            del self._names[next(iter(self._names))]
        self._names[tag] = name

    def _read(self) -> None:
        """Read the names that earlier processes of this node noted."""
        try:
            if self._notes is None or not self._notes.exists():
                return
            with self._notes.open("rb") as file:
                names = file.read(_NOTES_BYTES_MAX).decode("utf-8", "replace").splitlines()
        except OSError as error:
            _log.warning("history: what nodes there were cannot be read (%s)", error)
            return
        for name in filter(None, names):
            self._remember(name)
        self._noted = frozenset(names)

    def _write(self) -> None:
        self._noted = frozenset([*self._names.values(), *self._peers.known()])
        if self._notes is None:
            return
        new = self._notes.with_name(f".{self._notes.name}.new")
        try:
            self._notes.parent.mkdir(parents=True, exist_ok=True)
            new.write_text("\n".join([*sorted(self._names.values()), ""]), encoding="utf-8")
            os.replace(new, self._notes)
        except OSError as error:
            _log.warning("history: it cannot be noted what nodes there are (%s)", error)


def _draw(tenant: str, key: str, name: str) -> bytes:
    said = "\0".join((tenant, key, name)).encode()
    return blake2b(said, digest_size=8, person=b"smg key").digest()
