"""Predecessors: earlier processes of this node, whose unfinished runs can be recovered at once.

A node's name alone is not enough: two nodes may have the same one and share a store without knowing
of each other. So each process notes its random suffix in the data directory, and its successors
read it there.
"""

import logging
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from smg_storage.ids import Chance

KEPT_MAX: Final = 16
"""Whoever ended longer ago than so many processes has no lease that is not over."""
_FILE_BYTES_MAX: Final = 4_096
_WORD: Final = re.compile(r"[0-9a-f]{8}\Z")

_log: Final = logging.getLogger("smg_node.history")


class Predecessors:
    """This process and those before it, in a folder of their node."""

    def __init__(self, folder: Path, name: str, *, chance: Chance) -> None:
        """Choose a suffix for this process, and note it; without a disk its successors wait for its
        leases to expire.
        """
        life = f"{chance.getrandbits(32):08x}"
        self.owner: Final = f"{name}/{life}"
        """What this process calls itself where it owns something."""
        before: Sequence[str] = ()
        try:
            before = _read(folder / name)
            _write(folder / name, [*before, life][-KEPT_MAX:])
        except OSError as error:
            _log.warning("history: this process leaves no note for its successors (%s)", error)
        self.earlier: Final = frozenset(f"{name}/{word}" for word in before if word != life)
        """What earlier processes of this node called themselves."""


def node_of(owner: str) -> str:
    """Return the name of the node of an owner, `node/process`."""
    return owner.rpartition("/")[0]


def _read(file: Path) -> Sequence[str]:
    if not file.exists():
        return ()
    with file.open("rb") as opened:
        words = opened.read(_FILE_BYTES_MAX).decode("ascii", "replace").split()
    return [word for word in words if _WORD.match(word)][-KEPT_MAX:]


def _write(file: Path, words: Sequence[str]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f"{file.name}.new")
    new.write_text("\n".join([*words, ""]))
    os.replace(new, file)
