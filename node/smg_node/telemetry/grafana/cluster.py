"""Cluster dashboards: limits and tenants' use of them, membership, shared state."""

from typing import Final

from smg_node.telemetry.grafana.panels import (
    Board,
    Panel,
    Section,
    called,
    largest,
    mean,
    most,
    rate,
    recorded,
    smallest,
    total,
)
from smg_node.telemetry.metrics.declared import limits, mesh, rights, usage
from smg_node.telemetry.metrics.declared import node as declared
from smg_node.telemetry.metrics.declared import shared_state as state

LIMITS: Final = Board(
    "limits",
    "smg-node: limits and tenants",
    "Who uses what, which limits turn requests away, and whether rights to spend them flow.",
    (
        Section(
            "Tenants",
            (
                Panel(
                    "Requests",
                    "That are over and were not refused; (none) came without a tenant's key.",
                    "reqps",
                    (recorded("smg:tenant_requests:rate5m", "{{tenant}}"),),
                ),
                Panel(
                    "Refused",
                    "By a limit, or because something was wrong with them.",
                    "reqps",
                    (recorded("smg:tenant_refused:rate5m", "{{tenant}}"),),
                ),
                Panel(
                    "By status",
                    "HTTP requests with a tenant's key; 429 is a limit.",
                    "reqps",
                    (rate(declared.TENANT_REQUESTS, "tenant", "status"),),
                ),
                Panel(
                    "Tokens of answers",
                    "By tenant.",
                    "cps",
                    (recorded("smg:tenant_completion_tokens:rate5m", "{{tenant}}"),),
                ),
                Panel(
                    "Tokens of prompts",
                    "By tenant, cached ones included.",
                    "cps",
                    (
                        recorded("smg:tenant_prompt_tokens:rate5m", "{{tenant}}"),
                        called(rate(usage.USAGE_CACHED_TOKENS, "tenant"), "cached {{tenant}}"),
                    ),
                ),
                Panel(
                    "Cost",
                    "In millionths of your currency a second, by the prices of the models.",
                    "short",
                    (rate(usage.USAGE_COST_MICRO, "tenant"),),
                ),
                Panel(
                    "Cost at vendors",
                    "In millionths of your currency a second, by provider; calls without a price cost what nobody knows.",
                    "short",
                    (rate(usage.PROVIDER_COST_MICRO, "provider"),),
                ),
                Panel(
                    "Tokens at vendors",
                    "New, cached and written ones of prompts, and those of answers.",
                    "cps",
                    (rate(usage.PROVIDER_TOKENS, "provider", "kind"),),
                ),
                Panel(
                    "Calls of unsure cost",
                    "Of models without a price; and those that broke off before their vendor said what they used.",
                    "cps",
                    (
                        called(rate(usage.PROVIDER_UNPRICED, "model"), "unpriced {{model}}"),
                        called(
                            rate(usage.PROVIDER_ESTIMATED, "provider"), "estimated {{provider}}"
                        ),
                    ),
                ),
                Panel(
                    "By model",
                    "Requests and tokens of answers of the ten that use most.",
                    "cps",
                    (
                        called(
                            most(rate(usage.USAGE_REQUESTS, "tenant", "model")),
                            "requests {{tenant}} {{model}}",
                        ),
                        called(
                            most(rate(usage.USAGE_COMPLETION_TOKENS, "tenant", "model")),
                            "answers {{tenant}} {{model}}",
                        ),
                    ),
                    width=16,
                ),
                Panel(
                    "Usage that is not written",
                    "Above zero a disk does not take it; rows are lost after two days only.",
                    "cps",
                    (
                        rate(usage.USAGE_UNWRITTEN, "instance"),
                        called(rate(usage.USAGE_LOST), "lost"),
                    ),
                ),
            ),
        ),
        Section(
            "Limits",
            (
                Panel(
                    "What became of requests",
                    "Admitted, refused, or waited for rights first, by limit.",
                    "reqps",
                    (recorded("smg:limit_requests:rate5m", "{{limit}} {{outcome}}"),),
                    width=12,
                ),
                Panel(
                    "By node",
                    "Refused by each node: where only one refuses, rights do not reach it.",
                    "reqps",
                    (rate(limits.LIMIT_REQUESTS, "instance", outcome="refused"),),
                    width=12,
                ),
                Panel(
                    "Charged",
                    "In the limit's own unit.",
                    "cps",
                    (rate(limits.LIMIT_CHARGED, "limit"),),
                ),
                Panel(
                    "Owed",
                    "Used without a right, and paid from the windows to come: nodes that are cut off, or long answers.",
                    "cps",
                    (rate(limits.LIMIT_OWED, "limit"),),
                ),
                Panel(
                    "Under way",
                    "Requests that limits apply to, not settled yet.",
                    "short",
                    (total(limits.LIMITED_OPEN, "instance"),),
                ),
            ),
        ),
        Section(
            "Rights between nodes",
            (
                Panel(
                    "Datagrams",
                    "None while nothing is limited.",
                    "cps",
                    (rate(rights.RIGHTS_PACKETS, "direction"),),
                ),
                Panel(
                    "Written to disk",
                    "Before a vote counts; failed ones mean that a node gives none.",
                    "cps",
                    (rate(rights.RIGHTS_SAVES, "instance", "outcome"),),
                ),
                Panel(
                    "Not heard, and not right",
                    "Differences are always 0, or there is a mistake in this software.",
                    "cps",
                    (
                        called(rate(rights.RIGHTS_REFUSED, "why"), "refused: {{why}}"),
                        called(rate(rights.RIGHTS_DIFFERENCES), "differences"),
                    ),
                ),
            ),
        ),
    ),
)

MESH: Final = Board(
    "mesh",
    "smg-node: mesh and state",
    "Who is alive for whom, how nodes find that out, and whether what they share is the same everywhere.",
    (
        Section(
            "Members",
            (
                Panel(
                    "As each node sees them",
                    "All nodes should see the same.",
                    "short",
                    (total(mesh.MESH_MEMBERS, "instance", "state"),),
                ),
                Panel(
                    "Doubts of itself",
                    "0 is well; a node with 7 takes eight times as long before it believes that another one is dead.",
                    "short",
                    (largest(mesh.MESH_HEALTH, "instance"),),
                    most=7.0,
                ),
                Panel(
                    "Joined, cut off",
                    "Joined is 1 where a node has met a peer, cut off where it believes to be alone.",
                    "bool",
                    (
                        called(smallest(mesh.MESH_JOINED, "instance"), "joined {{instance}}"),
                        called(largest(mesh.MESH_ISOLATED, "instance"), "cut off {{instance}}"),
                    ),
                    most=1.0,
                ),
                Panel(
                    "Deaths and returns",
                    "Members that died for a node, and those that came back in the same life.",
                    "cps",
                    (
                        called(rate(mesh.MESH_DEATHS), "deaths"),
                        called(rate(mesh.MESH_RETURNS, "step"), "returned: {{step}}"),
                    ),
                ),
                Panel(
                    "Doubts", "By what became of them.", "cps", (rate(mesh.MESH_DOUBTS, "step"),)
                ),
                Panel(
                    "Accusations",
                    "Sent, withheld, ignored, and why; told is to those who were accused.",
                    "cps",
                    (
                        rate(mesh.MESH_ACCUSATIONS, "outcome", "reason"),
                        called(rate(mesh.MESH_TOLD, "whom"), "told: {{whom}}"),
                    ),
                ),
                Panel(
                    "Lives",
                    "Newer processes of a name, and rows forgotten.",
                    "cps",
                    (rate(mesh.MESH_LIVES, "what"),),
                ),
            ),
        ),
        Section(
            "Probes and packets",
            (
                Panel(
                    "Probes",
                    "What brought the answer: relays and TCP at length mean lost datagrams.",
                    "cps",
                    (
                        rate(mesh.MESH_PROBES, "outcome"),
                        called(rate(mesh.MESH_RELAYED), "for others"),
                    ),
                ),
                Panel(
                    "Round trip",
                    "Mean of direct probes.",
                    "s",
                    (mean(mesh.MESH_ROUND_TRIPS, mesh.MESH_PROBES, "instance", outcome="direct"),),
                ),
                Panel(
                    "Only TCP answered",
                    "The network drops the mesh's datagrams: let its UDP port through.",
                    "cps",
                    (rate(mesh.MESH_UDP_BLOCKED, "instance"),),
                ),
                Panel("Datagrams", "In and out.", "cps", (rate(mesh.MESH_DATAGRAMS, "direction"),)),
                Panel(
                    "Bytes of datagrams",
                    "In and out.",
                    "Bps",
                    (rate(mesh.MESH_DATAGRAM_BYTES, "direction"),),
                ),
                Panel(
                    "Not taken",
                    "Datagrams that the system lost, that were refused (a wrong key?), or meant for others.",
                    "cps",
                    (
                        called(rate(mesh.MESH_LOST, "reason"), "lost: {{reason}}"),
                        called(rate(mesh.MESH_REFUSED, "reason"), "refused: {{reason}}"),
                        called(rate(mesh.MESH_IGNORED, "reason"), "ignored: {{reason}}"),
                    ),
                ),
                Panel(
                    "Exchanges of the table",
                    "Opened, by why, and how they ended.",
                    "cps",
                    (
                        called(rate(mesh.MESH_EXCHANGES, "reason"), "opened: {{reason}}"),
                        called(rate(mesh.MESH_EXCHANGE_ENDS, "outcome"), "ended: {{outcome}}"),
                    ),
                ),
                Panel(
                    "Streams between nodes",
                    "Served, refused, and those that came to nothing.",
                    "cps",
                    (
                        called(rate(mesh.MESH_STREAMS_SERVED, "kind"), "served: {{kind}}"),
                        called(rate(mesh.MESH_STREAMS_REFUSED, "reason"), "refused: {{reason}}"),
                        called(rate(mesh.MESH_STREAMS_FAILED, "reason"), "failed: {{reason}}"),
                    ),
                ),
                Panel(
                    "Pauses",
                    "Seconds in a second that a node's own loop stood still, and how often.",
                    "short",
                    (
                        called(rate(mesh.MESH_STALL_SECONDS, "instance"), "seconds {{instance}}"),
                        called(rate(mesh.MESH_STALLS, "instance"), "times {{instance}}"),
                    ),
                ),
                Panel(
                    "Our mistakes, and the rest",
                    "Faults are to be reported; peers are written to disk for the next start.",
                    "cps",
                    (
                        called(rate(mesh.MESH_FAULTS, "where"), "fault: {{where}}"),
                        called(rate(mesh.MESH_SNAPSHOTS, "outcome"), "snapshot: {{outcome}}"),
                        called(rate(mesh.MESH_OTHER, "what", "detail"), "{{what}} {{detail}}"),
                    ),
                    width=16,
                ),
            ),
        ),
        Section(
            "Shared state",
            (
                Panel(
                    "Held",
                    "0 while a node joins.",
                    "bool",
                    (smallest(state.STATE_HELD, "instance"),),
                    most=1.0,
                ),
                Panel(
                    "Entries",
                    "By kind; nodes should agree.",
                    "short",
                    (total(state.STATE_ENTRIES, "instance", "kind"),),
                ),
                Panel(
                    "Bytes", "With their history.", "bytes", (largest(state.STATE_BYTES, "kind"),)
                ),
                Panel(
                    "Documents",
                    "In use, by kind.",
                    "short",
                    (largest(state.STATE_DOCUMENTS, "kind"),),
                ),
                Panel(
                    "Not on disk",
                    "Documents that are not on disk as they are now; above zero for long, the disk does not take them.",
                    "short",
                    (total(state.STATE_UNSAVED, "instance"),),
                ),
                Panel(
                    "Written",
                    "To disk, by outcome.",
                    "cps",
                    (rate(state.STATE_SAVES, "instance", "outcome"),),
                ),
                Panel(
                    "Learned",
                    "Documents and tables that an exchange changed.",
                    "cps",
                    (rate(state.STATE_LEARNED, "kind"),),
                ),
                Panel("Upkeep", "What keeps it whole.", "cps", (rate(state.STATE_UPKEEP, "what"),)),
                Panel(
                    "Refused, full, mistaken",
                    "Full documents refuse writes; faults are to be reported.",
                    "cps",
                    (
                        called(rate(state.STATE_REFUSED, "what"), "refused: {{what}}"),
                        called(rate(state.STATE_FULL), "full"),
                        called(rate(state.STATE_FAULTS), "faults"),
                        called(rate(state.STATE_OTHER, "what", "detail"), "{{what}} {{detail}}"),
                    ),
                ),
            ),
        ),
    ),
)
