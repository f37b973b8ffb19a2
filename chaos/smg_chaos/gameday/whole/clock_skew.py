"""Clock skew: a preloaded library sets a node's wall clock wrong and its disk slow while it runs.

A small library of our own (`native/skew.c`) is compiled when a day begins and loaded before every node. It reads two
numbers from a file of the node's, which the fault writes.
"""

import mmap
import os
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from smg_chaos.gameday.agents.cluster import ClusterError

SOURCE: Final = Path(__file__).with_name("native") / "skew.c"
_NUMBERS: Final = struct.Struct("=q")
_BYTES: Final = 2 * _NUMBERS.size
_COMPILE_S: Final = 60.0


def compiled(folder: Path) -> Path:
    """Return the library, compiled into `folder` by the machine's C compiler; ClusterError with what that said if it is not."""
    library = folder / "skew.so"
    command = ["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_COMPILE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClusterError(f"clocks and disks need a C compiler called cc: {error}") from error
    if done.returncode != 0:
        raise ClusterError(f"{SOURCE.name} is not compiled:\n{done.stderr[-2000:]}")
    return library


class Skew:
    """How wrong one program's clock is, and how slow its disk; the program is right and quick at first."""

    def __init__(self, library: Path, numbers: Path, data: Path) -> None:
        """Take the library, where the two numbers are to be, and the folder that lies on the slow disk."""
        numbers.write_bytes(bytes(_BYTES))
        self._library: Final = library
        self._numbers: Final = numbers
        self._data: Final = data
        with numbers.open("r+b") as file:
            self._mapped: Final = mmap.mmap(file.fileno(), _BYTES)

    @property
    def environment(self) -> Mapping[str, str]:
        """What the program's environment must have; its children have it too."""
        before = os.environ.get("LD_PRELOAD", "")
        return {
            "LD_PRELOAD": f"{self._library} {before}".strip(),
            "SKEW_NUMBERS": str(self._numbers),
            "SKEW_FOLDER": str(self._data),
        }

    def set_clock(self, ahead_s: float) -> None:
        """Let the wall clock be so many seconds ahead from now on, or behind; it jumps there."""
        _NUMBERS.pack_into(self._mapped, 0, round(ahead_s * 1e9))

    def set_disk(self, delay_s: float) -> None:
        """Let each write and sync of a file in the data folder take so much longer from now on."""
        _NUMBERS.pack_into(self._mapped, _NUMBERS.size, round(delay_s * 1e6))
