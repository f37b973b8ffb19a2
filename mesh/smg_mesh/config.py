"""Mesh configuration: every number of membership, state and TLS, with its unit and its reason.

A *profile* is a set of timers for one kind of network. `lan` finds a crash in about 2.5 s and forgives
pauses of 1.5 s; `lan-stable` is for hosts that stall for seconds (6 s and 4 s); `wan` for links that lose
packets for seconds; `local` for nodes of one machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

ProfileName: TypeAlias = Literal["lan", "lan-stable", "wan", "local"]

DEFAULT_PORT: Final = 7946
"""UDP for gossip and TCP for streams, as serf has it."""
NAME_PATTERN: Final = r"[a-z0-9._-]{1,63}"
META_BYTES_MAX: Final = 512
NEWS_BYTES_MAX: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class SwimOptions:
    """Options of the membership protocol. Times are milliseconds."""

    probe_interval_ms: int
    """Time between two probes; also the unit of every suspicion."""
    probe_timeout_ms: int
    """Longest wait for a direct answer before relays are asked."""
    suspicion_mult: int
    """Suspicion lasts at least this many intervals, times log10 of the members."""
    retransmit_mult: int = 4
    """A rumor is sent this many times log10 of the members."""
    gossip_interval_ms: int
    gossip_nodes: int
    relays: int = 3
    exchange_interval_ms: int
    """Time between two exchanges with a random peer."""
    stream_ping_ms: int
    """Deadline of a ping over TCP."""
    stream_exchange_ms: int
    """Deadline of an exchange."""
    stall_min_ms: int = 100
    """A loop this late has stalled; so has one late by a quarter of the probe interval."""
    forget_after_ms: int = 86_400_000
    """Rows of the dead and of those who left are kept a day: long enough for a cut to heal."""
    gossip_to_dead_ms: int = 30_000
    """The dead still get gossip that long, so that a wrong death is heard of."""
    rows_max: int = 4096
    """Rows of dead or left members; the oldest go first."""
    accusations_per_s: float = 3.0
    accusations_burst: int = 5
    accusations_taken_per_s: float = 20.0
    """Per accuser; what is above is ignored and counted."""
    flap_half_life_ms: int = 60_000
    hold_down_ms: int = 5_000
    hold_down_max_ms: int = 120_000
    hold_down_answers: int = 3
    """Direct answers after which a member that came back is announced."""
    exchanges_in_flight: int = 2
    news_entries_max: int = 4096
    news_bytes_max: int = 1_048_576


PROFILES: Final[Mapping[ProfileName, SwimOptions]] = MappingProxyType(
    {
        "lan": SwimOptions(
            probe_interval_ms=500,
            probe_timeout_ms=200,
            suspicion_mult=3,
            gossip_interval_ms=200,
            gossip_nodes=3,
            exchange_interval_ms=30_000,
            stream_ping_ms=1_000,
            stream_exchange_ms=10_000,
        ),
        "lan-stable": SwimOptions(
            probe_interval_ms=1_000,
            probe_timeout_ms=500,
            suspicion_mult=4,
            gossip_interval_ms=200,
            gossip_nodes=3,
            exchange_interval_ms=30_000,
            stream_ping_ms=1_000,
            stream_exchange_ms=10_000,
        ),
        "wan": SwimOptions(
            probe_interval_ms=5_000,
            probe_timeout_ms=3_000,
            suspicion_mult=6,
            gossip_interval_ms=500,
            gossip_nodes=4,
            exchange_interval_ms=60_000,
            stream_ping_ms=5_000,
            stream_exchange_ms=30_000,
        ),
        "local": SwimOptions(
            probe_interval_ms=200,
            probe_timeout_ms=100,
            suspicion_mult=3,
            gossip_interval_ms=50,
            gossip_nodes=3,
            exchange_interval_ms=5_000,
            stream_ping_ms=1_000,
            stream_exchange_ms=5_000,
        ),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BriefTable:
    """Options of a table whose rows live for minutes: they are spread by rumor, handed to nodes that come, and kept on
    no disk. They are in no digest: at one row a request no two nodes would ever hold the same. Rumors of one that
    `yields` are left out where they would delay those of others.
    """

    shards: int = 16
    rows_max: int = 100_000
    ttl_ms: int = 300_000
    yields: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class StateOptions:
    """Options of replicated state. Times are milliseconds."""

    documents: Mapping[str, int] = field(
        default_factory=lambda: MappingProxyType(
            {
                "settings": 64,
                "workers": 64,
                "audit": 16,
                "cluster": 1,
                "keys": 16,
                "limits": 16,
                "providers": 16,
                "access": 16,
                "discovery": 1,
            }
        )
    )
    """Namespaces and into how many documents the keys of each are spread: 64 keep 50,000 workers in bounds.
    `cluster` is what nodes know of the cluster itself."""
    documents_by_head: tuple[str, ...] = ("workers",)
    """Namespaces whose keys go by their first part: all that is said of one worker travels together."""
    tables: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({"sticky": 64}))
    """Tables and into how many shards each is cut: what differs is sent a shard at a time."""
    brief_tables: Mapping[str, BriefTable] = field(
        default_factory=lambda: MappingProxyType(
            {
                "prompt_caches": BriefTable(),
                "tool_sessions": BriefTable(shards=4, rows_max=20_000, yields=False),
            }
        )
    )
    document_bytes_max: int = 262_144
    """A document of that size merges in 5 ms at worst, in which nothing else runs; more keys are refused."""
    epoch_bytes: int = 196_608
    epoch_clients: int = 500
    epoch_deletions: int = 20_000
    epoch_age_ms: int = 7 * 86_400_000
    """A document over any of these four is begun anew."""
    union_ms: int = 60_000
    """So long the old document is read beside the new one."""
    removed_keep_ms: int = 7 * 86_400_000
    """A removal is remembered so long; who was away for longer brings nothing back."""
    future_ms: int = 60_000
    """An entry from a clock further ahead waits for its time."""
    gap_ms: int = 400
    """An update whose predecessor has not come by then is fetched."""
    push_apart_ms: int = 200
    rumor_bytes_per_s: int = 16_384
    """Own updates beyond this rate go by exchanges instead of rumors."""
    register_apart_ms: int = 100
    registers_max: int = 65_536
    register_after_death_ms: int = 10_000
    """Registers of a member that died are dropped after this time."""
    table_rows_max: int = 50_000
    table_ttl_ms: int = 4 * 3_600_000
    save_apart_ms: int = 10_000
    """A changed document is written to the data dir after at most this time."""
    join_grace_ms: int = 15_000
    """A node that meets no living member for so long after its start takes what it has for all there is."""
    hint_bytes_per_s: int = 65_536
    """To each peer: 6,500 changes; what is more is dropped, and noticed by the digests."""
    hint_digest_ms: int = 5_000
    """While hints change, a peer is told so often what it should hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """Certificate files of an operator for the streams; watched, and read anew when they change."""

    certificate: Path
    key: Path
    authority: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshOptions:
    """Options of one member of the mesh, given at start."""

    name: str
    """Unique in the cluster; `NAME_PATTERN`."""
    listen_host: str
    listen_port: int
    """UDP and TCP; 0 takes a port that is free for both."""
    advertise: str = ""
    """`HOST[:PORT]` told to peers; empty: the listen address, or for 0.0.0.0 the address of the route out."""
    join: tuple[str, ...] = ()
    """Seeds, `HOST[:PORT]`, retried for ever."""
    swim: SwimOptions = field(default_factory=lambda: PROFILES["lan"])
    state: StateOptions = field(default_factory=StateOptions)
    label: str = "default"
    """Name of the cluster; packets of another label are refused."""
    key_file: Path | None = None
    """Keyring: one base64 key of 32 bytes a line, the first one encrypts."""
    insecure: bool = False
    """Plain text on purpose. Without it and without keys a node refuses to join or be joined."""
    tls: TlsFiles | None = None
    """Without it certificates are made from the keyring."""
    data_dir: Path | None = None
    """Boot, peers and keyring live here; None: nothing is kept."""
    meta: Mapping[str, str | int | bool] = field(default_factory=dict)
    """What others should know of this node: version, HTTP address, zone; at most 512 bytes packed."""
    expect: int = 0
    """So many nodes have to see each other before the first of them vote; 0: a majority of the seeds, 2 at least."""
    join_grace_s: float = 15.0
    """Readiness waits this long for the first peer, not longer."""
