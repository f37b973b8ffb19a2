"""Mesh knobs: how this node finds its peers, its keys, and the timers of failure detection.

Every timer comes from the profile; a knob that is set outweighs it. The mesh opens no port unless it
has a keyring, or was told to do without.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import Field, field_validator, model_validator

from smg_mesh.config import DEFAULT_PORT, PROFILES, ProfileName
from smg_node.config.address import split_peer
from smg_node.config.schema.declaration import (
    ListenAddress,
    Section,
    address,
    choice,
    number,
    place,
    switch,
    text,
    words,
)
from smg_node.config.sections.discovery_pods import checked_annotation, checked_namespace

OF_PROFILE: Final = "of the profile"
_LABEL: Final = re.compile(r"[A-Za-z0-9._-]{1,63}", re.ASCII)
_IN_SECONDS: Final = (
    *("probe_interval", "probe_timeout", "gossip_interval", "exchange_interval", "forget_after"),
)
_COUNTED: Final = ("suspicion_mult", "retransmit_mult", "gossip_nodes", "relays")
_MAKE_KEY: Final = "`smg-admin cluster keyring generate` makes one"


class MeshTls(Section):
    """An operator's own certificates for the mesh's TCP side, watched for changes; without them they are made from the keyring."""

    certificate: Path | None = place(
        None,
        "File of this node's certificate, whose DNS names are the node's and the mesh's label with"
        " `mesh.` before it.",
        metavar="FILE",
    )
    key: Path | None = place(None, "File of the certificate's private key.", metavar="FILE")
    authority: Path | None = place(
        None, "File of the authority that signed every member's certificate.", metavar="FILE"
    )

    @field_validator("certificate", "key", "authority")
    @classmethod
    def _expand(cls, path: Path | None) -> Path | None:
        return path.expanduser() if path is not None else None

    @model_validator(mode="after")
    def _all_or_none(self) -> "MeshTls":
        files = {f"mesh.tls.{name}": value for name, value in dict(self).items()}
        missing = [name for name, value in files.items() if value is None]
        if 0 < len(missing) < len(files):
            raise ValueError(
                f"all three files are needed together; {' and '.join(missing)} missing"
            )
        return self

    @property
    def given(self) -> bool:
        """Whether there are certificates at all."""
        return self.certificate is not None


class MeshSection(Section):
    """How nodes become a cluster: where they meet, who is doubted when."""

    listen: ListenAddress = address(
        f"0.0.0.0:{DEFAULT_PORT}",
        "Address of the mesh: UDP for gossip, TCP of the same number for streams. Port 0 takes one that"
        " is free for both. Open only with a keyring or with --insecure-mesh.",
        short="--mesh",
    )
    advertise: str = text(
        "",
        "Address that peers are told, if it is not the one this node listens on.",
        most=300,
        short="--advertise",
        metavar="HOST[:PORT]",
    )
    join: tuple[str, ...] = words(
        (),
        "Nodes to find the others through: addresses or DNS names, all of them tried for ever and in any"
        f" order of start. The port is {DEFAULT_PORT} if unsaid.",
        most=256,
        short="--join",
        metavar="HOST[:PORT]",
    )
    kubernetes_selector: str = text(
        "",
        "Label selector of the pods of this cluster's nodes, to find the others through besides those to join.",
        most=1024,
        metavar="SELECTOR",
    )
    kubernetes_namespace: str = text(
        "",
        "Where those pods are; `*` is everywhere, and needs a ClusterRole.",
        most=63,
        metavar="NAMESPACE",
        shown="the pod's own",
    )
    kubernetes_port_annotation: str = text(
        "sglang.ai/mesh-port",
        "Annotation of such a pod that says the port of its mesh; without it that is this node's own.",
        most=317,
        metavar="KEY",
        aliases=("--router-mesh-port-annotation",),
    )
    key_file: Path | None = place(
        None,
        "Keyring of gossip and streams: keys of 32 bytes in base64, one a line, the first one encrypts;"
        f" {_MAKE_KEY}.",
        short="--mesh-key",
        metavar="FILE",
    )
    insecure: bool = switch(
        False, "Run the mesh in plain text, without any keyring.", short="--insecure-mesh"
    )
    label: str = text(
        "default",
        "Name of the cluster; members of another one are strangers, also with the same key.",
        most=63,
        metavar="NAME",
    )
    profile: ProfileName = choice(
        "lan",
        "Timers for a kind of network: `lan` finds a crash in 2.5 s and forgives pauses of 1.5 s,"
        " `lan-stable` 6 s and 4 s, `wan` 41 s and 15 s, `local` (one machine) 1 s and 0.5 s.",
    )
    join_grace_s: float = number(
        15,
        "Seconds readiness waits for the first peer of those to join; then the node serves alone.",
        low=0,
        high=3600,
        why="0 never waits; after an hour without any peer nobody expects one",
    )
    expect: int = number(
        0,
        "Nodes that have to see each other before the first of them vote on limits; 0: a majority of those"
        " to join, and two at least.",
        low=0,
        high=1024,
        why="more names than that never vote",
    )
    probe_interval_s: float | None = number(
        None,
        "Seconds between two probes of one member each; every suspicion is a multiple of it.",
        low=0.05,
        high=60,
        why="below 50 ms a busy loop looks dead; above a minute a crash goes unseen for many",
        shown=OF_PROFILE,
    )
    probe_timeout_s: float | None = number(
        None,
        "Longest wait for a direct answer before other members are asked to look.",
        low=0.02,
        high=30,
        why="below 20 ms ordinary jitter is silence; it must stay below the probe interval",
        shown="of the profile, in proportion to the interval",
    )
    suspicion_mult: int | None = number(
        None,
        "Probe intervals that a doubt lasts at least, times the logarithm of the members.",
        low=2,
        high=20,
        why="with 1 nobody has time to answer a doubt; 20 is most of a minute on a LAN",
        shown=OF_PROFILE,
    )
    retransmit_mult: int | None = number(
        None,
        "Times a rumor is sent by each member, times the logarithm of the members.",
        low=1,
        high=10,
        why="once at least; beyond 10 everybody has heard it long ago",
        shown=OF_PROFILE,
    )
    gossip_interval_s: float | None = number(
        None,
        "Seconds between two rounds of gossip while there is something to tell.",
        low=0.02,
        high=10,
        why="more than 50 rounds a second are load; above 10 s news is old",
        shown=OF_PROFILE,
    )
    gossip_nodes: int | None = number(
        None,
        "Members told in a round of gossip.",
        low=1,
        high=16,
        why="one at least; above 16 every round floods the network",
        shown=OF_PROFILE,
    )
    relays: int | None = number(
        None,
        "Members asked to look at one that does not answer.",
        low=0,
        high=10,
        why="0 relies on own eyes and TCP; more than 10 opinions change nothing",
        shown=OF_PROFILE,
    )
    exchange_interval_s: float | None = number(
        None,
        "Seconds between two comparisons of everything known with a random member.",
        low=1,
        high=3600,
        why="more than one a second is load; differences are found by digest long before an hour",
        shown=OF_PROFILE,
    )
    forget_after_s: float | None = number(
        None,
        "Seconds that dead members and those who left stay in the table.",
        low=60,
        high=2_592_000,
        why="below a minute the late news of a death looks like a new member; a month is past any repair",
        shown="86400",
    )
    tls: MeshTls = Field(default_factory=MeshTls)

    @property
    def enabled(self) -> bool:
        """Whether this node takes part in a mesh; without, it runs alone and opens no port for one."""
        return self.insecure or self.key_file is not None

    @property
    def swim_changes(self) -> Mapping[str, int]:
        """The timers that are set, under the names and in the units of the mesh.

        A probe interval without a timeout brings one in the profile's proportion.
        """
        said = {f"{name}_ms": getattr(self, f"{name}_s") for name in _IN_SECONDS}
        said |= {name: getattr(self, name) for name in _COUNTED}
        changes = {
            name: round(value * 1000) if name.endswith("_ms") else value
            for name, value in said.items()
            if value is not None
        }
        if self.probe_interval_s is not None and self.probe_timeout_s is None:
            profile = PROFILES[self.profile]
            share = profile.probe_timeout_ms / profile.probe_interval_ms
            changes["probe_timeout_ms"] = round(changes["probe_interval_ms"] * share)
        return changes

    @field_validator("key_file")
    @classmethod
    def _expand(cls, path: Path | None) -> Path | None:
        return path.expanduser() if path is not None else None

    @field_validator("kubernetes_namespace")
    @classmethod
    def _namespace(cls, said: str) -> str:
        return checked_namespace(said)

    @field_validator("kubernetes_port_annotation")
    @classmethod
    def _annotation(cls, said: str) -> str:
        return checked_annotation(said)

    @field_validator("label")
    @classmethod
    def _label(cls, label: str) -> str:
        if not _LABEL.fullmatch(label):
            raise ValueError(f"{label!r} is not a label (letters, digits and . _ - only)")
        return label

    @field_validator("advertise")
    @classmethod
    def _advertise(cls, said: str) -> str:
        if said:
            host, port = split_peer(said)
            if port == 0 or host in ("0.0.0.0", "::"):
                raise ValueError(f"nobody can reach {said}; say an address of this machine")
        return said

    @field_validator("join")
    @classmethod
    def _join(cls, peers: tuple[str, ...]) -> tuple[str, ...]:
        for peer in peers:
            host, port = split_peer(peer)  # the mesh's own port, not that of HTTP
            if port == 0:
                raise ValueError(f"nobody listens on port 0, as in {peer}")
            if host.startswith("_") and port is not None:
                raise ValueError(f"{peer}: the SRV records of a service name say the port")
        return peers

    @model_validator(mode="after")
    def _makes_sense(self) -> "MeshSection":
        if self.insecure and self.key_file is not None:
            raise ValueError(
                "mesh.insecure and mesh.key_file exclude each other: --insecure-mesh is plain text,"
                " --mesh-key FILE is encrypted"
            )
        if self.join and not self.enabled:
            raise ValueError(
                f"mesh.join needs mesh.key_file (--mesh-key FILE; {_MAKE_KEY}), or --insecure-mesh"
                " for plain text"
            )
        if self.kubernetes_selector.strip() and not self.enabled:
            raise ValueError(
                f"mesh.kubernetes_selector needs mesh.key_file (--mesh-key FILE; {_MAKE_KEY}), or"
                " --insecure-mesh for plain text"
            )
        if self.tls.given and self.key_file is None:
            raise ValueError(
                "mesh.tls needs mesh.key_file as well: certificates protect streams, not gossip"
            )
        return self._timers_fit()

    def _timers_fit(self) -> "MeshSection":
        interval_s = self.probe_interval_s or PROFILES[self.profile].probe_interval_ms / 1000
        timeout_s = self.probe_timeout_s
        if timeout_s is not None and timeout_s >= interval_s:
            raise ValueError(
                f"mesh.probe_timeout_s ({timeout_s:g}) must be below mesh.probe_interval_s"
                f" ({interval_s:g}): others are asked to look within the interval"
            )
        return self
