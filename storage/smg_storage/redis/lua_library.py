"""Lua library: the functions that run inside the server, as a library of functions and as scripts.

A library is called by the digest of its text, so nodes of two versions use one server without touching each other's, and
a node never has to ask which version is there. Where functions are missing (Redis before 7), and in a cluster, whose
servers come and go, the same text is run as a script under its own digest. Each is there three times: one that
only reads, and so is allowed on a server without memory; one that writes; and one that writes but frees.
"""

from enum import Enum
from functools import cached_property
from hashlib import sha1, sha256
from importlib.resources import files
from typing import Final

_PARTS: Final = ("common", "items", "conversations", "responses", "runs")
_RUN: Final = """
local function run(keys, argv)
  local a = cjson.decode(argv[1])
  a.v = argv
  a.sums = {}
  local answer = F[a.call](a)
  if next(a.sums) then
    keep_counts(a)
  end
  if a.copies then -- what was there already is waited for too: a copy is waited for only after a write
    call('SET', keys[1] .. ':copied', '1', 'PX', GRACE_MS)
  end
  return answer
end
"""


class Effect(Enum):
    """Effect of a call, as the server has to know it."""

    READ = "no-writes"
    WRITE = ""
    FREE = "allow-oom"


class Library:
    """The text of all functions, and its names."""

    def __init__(self) -> None:
        folder = files("smg_storage.redis") / "functions"
        parts = [(folder / f"{name}.lua").read_text(encoding="utf-8") for name in _PARTS]
        self._body: Final = "\n".join(parts) + _RUN
        self.name: Final = f"smg_{sha256(self._body.encode()).hexdigest()[:12]}"

    def function(self, effect: Effect) -> str:
        """Return what a function is called by FCALL."""
        return f"{self.name}_{effect.name.lower()}"

    @cached_property
    def functions(self) -> str:
        """The text for FUNCTION LOAD."""
        doors = [
            f"redis.register_function{{function_name='{self.function(effect)}', callback=run, "
            f"flags={{{repr(effect.value) if effect.value else ''}}}}}\n"
            for effect in Effect
        ]
        return f"#!lua name={self.name}\n{self._body}{''.join(doors)}"

    def script(self, effect: Effect, *, flags: bool) -> str:
        """Return the text for EVAL; a server before 7 knows no flags."""
        head = f"#!lua{f' flags={effect.value}' if effect.value else ''}\n" if flags else ""
        return f"{head}{self._body}return run(KEYS, ARGV)\n"

    def script_digest(self, effect: Effect, *, flags: bool) -> str:
        """Return the digest under which EVALSHA finds it: SHA-1 is the server's own choice."""
        return sha1(self.script(effect, flags=flags).encode(), usedforsecurity=False).hexdigest()
