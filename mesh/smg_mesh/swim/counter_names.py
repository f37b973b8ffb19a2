"""Counter names of the SWIM core: the names of its `Note` effects."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

NOTES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "probe_ok": "probes that were answered, by whatever way",
        "probe_indirect_ok": "probes that only a relay brought an answer to",
        "udp_blocked": "probes that were answered over TCP only: the network drops our datagrams",
        "probe_failed": "probes without an answer",
        "probe_void": "probes that prove nothing: this node stalled, or the member changed meanwhile",
        "rtt_us": "round trip of a direct probe, microseconds",
        "suspected": "members this node began to doubt",
        "confirmed": "doubts that another member confirmed",
        "hastened": "doubts shortened because the member's host refused a connection",
        "refuted": "doubts about others that were answered",
        "refuted_self": "doubts about this node that it answered",
        "spared": "doubts begun anew because the member answered its last chance, or was heard meanwhile",
        "died": "members that died, for this node",
        "accusation_sent": "doubts raised or confirmed by this node's own probes",
        "accusation_withheld": "doubts not raised; detail: isolated or rate",
        "accusation_ignored": "doubts not taken because the accuser raises too many; detail: accuser",
        "stall": "pauses of this node's own loop",
        "stall_ms": "their length",
        "refused": "input without effect; detail: wire, hello, limit",
        "misdirected": "pings for another name or boot; detail: name, boot",
        "stranger": "packets of members whose name or boot is unknown here; they are asked to say hello",
        "echo": "packets of this very process that came back",
        "told": "members that were told what is held against them",
        "told_self": "times this node was told; detail: the rank it was held to have",
        "relayed": "probes this node made for others",
        "healing": "dead members that were looked at",
        "flap": "returns of a dead member inside one boot",
        "held": "members that came back and have to hold out before they are announced",
        "exchange": "exchanges asked for; detail: why",
        "exchange_failed": "exchanges that ended badly",
        "exchange_dropped": "exchanges not asked for because too many wait",
        "superseded": "living processes with this node's name and a larger boot",
        "boot_raised": "times this node took a larger boot",
        "forgotten": "rows dropped because their time was over",
    }
)
