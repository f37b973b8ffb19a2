"""Pinning: which cores the gateways, the engines and the clients of a benchmark may use."""

import os
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from smg_chaos.bench.children import BenchError

Role: TypeAlias = Literal["gateway", "engine", "client"]
Pins: TypeAlias = Mapping[Role, frozenset[int]]
"""Cores by role; a role that is not named may use all."""
ROLES: Final[tuple[Role, ...]] = ("gateway", "engine", "client")
_LIKE: Final = "gateway=0-3,engine=4-5,client=6+7"


def read_pins(text: str) -> Pins:
    """Return what text such as `gateway=0-3,engine=4-5,client=6+7` says; ValueError."""
    pins: dict[Role, frozenset[int]] = {}
    for part in filter(None, text.split(",")):
        name, _, cores = part.partition("=")
        role = next((one for one in ROLES if one == name.strip()), None)
        if role is None or role in pins:
            raise ValueError(f"--pin is like {_LIKE}; not {text!r}")
        pins[role] = frozenset().union(*(_range(one, text) for one in cores.split("+")))
    return pins


def _range(word: str, text: str) -> range:
    first, dash, last = word.strip().partition("-")
    ends = (first, last) if dash else (first, first)
    if not all(one.isascii() and one.isdigit() and len(one) <= 4 for one in ends):
        raise ValueError(f"--pin is like {_LIKE}; not {text!r}")
    found = range(int(ends[0]), int(ends[1]) + 1)
    if not found:
        raise ValueError(f"--pin: {word.strip()!r} names no core")
    return found


def pin(pid: int, role: Role, pins: Pins) -> None:
    """Let a process that has just been started use the cores of its role only; BenchError where there are none of them.

    What it starts from then on has the same.
    """
    cores = pins.get(role)
    if not cores:
        return
    try:
        os.sched_setaffinity(pid, cores)
    except ProcessLookupError:
        return  # It ended at once; whoever waits for it says why.
    except (OSError, AttributeError) as error:
        said = getattr(error, "strerror", None) or "this system pins no processes"
        names = ", ".join(map(str, sorted(cores)))
        raise BenchError(f"the {role} cannot be pinned to cores {names}: {said}") from error


def told(pins: Pins) -> str:
    """Return who has which cores, in words."""
    said = [f"{role}: {_ranges(sorted(pins[role]))}" for role in ROLES if role in pins]
    free = [role for role in ROLES if role not in pins]
    if not said:
        return "none: gateway, engine and client share all cores"
    return ", ".join([*said, *(f"{role}: any" for role in free)])


def _ranges(cores: list[int]) -> str:
    parts: list[list[int]] = []
    for core in cores:
        if parts and core == parts[-1][-1] + 1:
            parts[-1].append(core)
        else:
            parts.append([core])
    return "+".join(str(one[0]) if len(one) == 1 else f"{one[0]}-{one[-1]}" for one in parts)
