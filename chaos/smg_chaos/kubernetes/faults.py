"""Faults of an API server, and what is set about it: changed while it serves."""

from dataclasses import dataclass, field, fields
from typing import Any

BOOKMARK_S = 60.0
BOOKMARK_BEFORE_END_S = 2.0


@dataclass(slots=True)
class Faults:
    """What is wrong on purpose.

    `stopped`: connections are taken and nothing is said, as by a process that got SIGSTOP. `store_stopped`: lists wait,
    watches go on and hear of nothing. `silent`: watches say nothing, neither changes nor bookmarks. `denied` are verbs
    (`list`, `watch`) that nobody has the right to. `failing` gives the status that a verb is answered with instead, and
    `retry_after_s` what such answers ask for. `tokens` are those that are known; empty, all are.
    """

    stopped: bool = False
    store_stopped: bool = False
    silent: bool = False
    denied: list[str] = field(default_factory=list)
    failing: dict[str, int] = field(default_factory=dict)
    retry_after_s: int = 0
    tokens: list[str] = field(default_factory=list)
    bookmark_s: float = BOOKMARK_S
    page_max: int = 500

    def set(self, said: dict[str, Any]) -> None:
        """Take what a JSON object says, and leave the rest; ValueError for what is none of it."""
        known = {one.name: type(getattr(self, one.name)) for one in fields(self)}
        for name, value in said.items():
            wanted = known.get(name)
            if wanted is None:
                raise ValueError(f"{name!r} is none of {', '.join(known)}")
            if wanted is float and isinstance(value, int) and not isinstance(value, bool):
                value = float(value)
            if type(value) is not wanted:
                raise ValueError(f"{name} must be of the type {wanted.__name__}")
            setattr(self, name, value)
