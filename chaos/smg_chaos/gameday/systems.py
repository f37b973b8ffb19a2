"""Systems that can be put through a scenario, and the programs each of them needs."""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from smg_chaos.gameday.agents.agent import Agent
from smg_chaos.gameday.agents.peer_gateway import PeerGateway
from smg_chaos.gameday.agents.serf_agent import SerfAgent
from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.lab.lab import Lab
from smg_node.core.ports import Clock

OURS: Final = "smg-node"
_SERF: Final = Path("serf/usr/bin/serf")
_SMG: Final = Path("smg/bin/smg")


class SystemMissingError(Exception):
    """A system is not on this machine; the message says how to get it."""


@dataclass(frozen=True, slots=True)
class Ground:
    """Arguments for making agents: a lab, an output folder, the folder of other systems, a random
    source, and flags for our own nodes.
    """

    lab: Lab
    folder: Path
    peers: Path
    clock: Clock
    rng: Random
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class System:
    """A system under test. `make` makes one agent for each of the names."""

    name: str
    says: str
    make: Callable[[Ground, list[str]], list[Agent]]
    is_ours: bool = False


def _smg(ground: Ground, names: list[str]) -> list[Agent]:
    key = ground.folder / "mesh.key"
    key.write_text(ground.rng.randbytes(32).hex() + "\n")
    key.chmod(0o600)
    return [_smg_agent(ground, name, key) for name in names]


def _smg_plain(ground: Ground, names: list[str]) -> list[Agent]:
    return [_smg_agent(ground, name, None) for name in names]


def _smg_agent(ground: Ground, name: str, key: Path | None) -> Agent:
    folder = ground.folder / name
    return SmgAgent(ground.lab, name, folder, ground.clock, key=key, flags=ground.flags)


def _peers(ground: Ground, names: list[str]) -> list[Agent]:
    program = (ground.peers / _SMG).resolve()
    return [
        PeerGateway(ground.lab, name, ground.folder / name, ground.clock, program=program)
        for name in names
    ]


def _serf(ground: Ground, names: list[str]) -> list[Agent]:
    return _serfs(ground, names, None)


def _serf_sealed(ground: Ground, names: list[str]) -> list[Agent]:
    return _serfs(ground, names, base64.b64encode(ground.rng.randbytes(32)).decode())


def _serfs(ground: Ground, names: list[str], key: str | None) -> list[Agent]:
    program = (ground.peers / _SERF).resolve()
    return [
        SerfAgent(ground.lab, name, ground.folder / name, ground.clock, program=program, key=key)
        for name in names
    ]


SYSTEMS: Final[Mapping[str, System]] = {
    one.name: one
    for one in (
        System(OURS, "this tree's node, with a mesh key", _smg, is_ours=True),
        System("smg-node-plain", "the same with --insecure-mesh", _smg_plain, is_ours=True),
        System("serf", "serf as it comes (plain text, profile lan)", _serf),
        System("serf-sealed", "serf with an encryption key", _serf_sealed),
        System(
            "smg",
            "the reference gateway, without its mesh; `limits` and `availability` only",
            _peers,
        ),
    )
}


def check_installed(names: list[str], peers: Path) -> None:
    """SystemMissingError if one of these is not on this machine."""
    if any(name.startswith("serf") for name in names) and not (peers / _SERF).exists():
        raise SystemMissingError(f"serf is not in {peers}. `make serf` fetches it.")
    if "smg" in names and not (peers / _SMG).exists():
        raise SystemMissingError(f"smg is not in {peers}. `make bench-peers` installs it.")
