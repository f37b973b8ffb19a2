"""Mesh metrics: members, probes, datagrams, streams; all are read from the mesh at scrape time."""

from typing import Final

from smg_node.telemetry.metrics.metric import Metric

MESH_MEMBERS = Metric(
    "smg_node_mesh_members",
    "gauge",
    "Rows of the member table by state; this node is among the alive.",
    ("state",),
    pulled=True,
)
MESH_HEALTH = Metric(
    "smg_node_mesh_health",
    "gauge",
    "How much this node distrusts itself, 0 (well) to 7; its probes take so much longer.",
    pulled=True,
)
MESH_JOINED = Metric(
    "smg_node_mesh_joined", "gauge", "1 once this node has met a peer, else 0.", pulled=True
)
MESH_ISOLATED = Metric(
    "smg_node_mesh_isolated",
    "gauge",
    "1 while this node believes that it is the one cut off, else 0.",
    pulled=True,
)
MESH_PROBES = Metric(
    "smg_node_mesh_probes_total",
    "counter",
    "Probes by outcome: direct, relay and tcp say what brought the answer, failed had none, void prove"
    " nothing.",
    ("outcome",),
    pulled=True,
)
MESH_UDP_BLOCKED = Metric(
    "smg_node_mesh_udp_blocked_total",
    "counter",
    "Probes that only TCP answered: the network drops the mesh's datagrams.",
    pulled=True,
)
MESH_ROUND_TRIPS = Metric(
    "smg_node_mesh_round_trip_seconds_total",
    "counter",
    "Round trips of direct probes, added up; divided by their number they are the mean.",
    pulled=True,
)
MESH_DOUBTS = Metric(
    "smg_node_mesh_suspicions_total",
    "counter",
    "Doubts by what became of them: suspected, confirmed, hastened (the host refused a connection),"
    " refuted (by others), refuted_self, spared (at the last chance).",
    ("step",),
    pulled=True,
)
MESH_DEATHS = Metric(
    "smg_node_mesh_deaths_total", "counter", "Members that died, for this node.", pulled=True
)
MESH_ACCUSATIONS = Metric(
    "smg_node_mesh_accusations_total",
    "counter",
    "Doubts of its own that this node sent or withheld, and those of others it ignored.",
    ("outcome", "reason"),
    pulled=True,
)
MESH_RETURNS = Metric(
    "smg_node_mesh_returns_total",
    "counter",
    "Dead members that came back in the same life (flap), were held down first (held), or were looked"
    " for (sought).",
    ("step",),
    pulled=True,
)
MESH_TOLD = Metric(
    "smg_node_mesh_told_total",
    "counter",
    "Times others were told what is held against them, and times this node was.",
    ("whom",),
    pulled=True,
)
MESH_LIVES = Metric(
    "smg_node_mesh_lives_total",
    "counter",
    "Processes of one name: superseded by a newer one, boot_raised over an older one; rows forgotten.",
    ("what",),
    pulled=True,
)
MESH_STALLS = Metric(
    "smg_node_mesh_stalls_total",
    "counter",
    "Pauses of this node's own loop that the mesh made allowance for.",
    pulled=True,
)
MESH_STALL_SECONDS = Metric(
    "smg_node_mesh_stall_seconds_total", "counter", "How long those lasted, added up.", pulled=True
)
MESH_DATAGRAMS = Metric(
    "smg_node_mesh_datagrams_total", "counter", "Datagrams in and out.", ("direction",), pulled=True
)
MESH_DATAGRAM_BYTES = Metric(
    "smg_node_mesh_datagram_bytes_total",
    "counter",
    "Bytes of datagrams in and out, without the headers of UDP and IP.",
    ("direction",),
    pulled=True,
)
MESH_LOST = Metric(
    "smg_node_mesh_datagrams_lost_total",
    "counter",
    "Datagrams the system did not take.",
    ("reason",),
    pulled=True,
)
MESH_REFUSED = Metric(
    "smg_node_mesh_refused_total",
    "counter",
    "Input that changed nothing, by reason: key, tag, replay, wire, size and others.",
    ("reason",),
    pulled=True,
)
MESH_IGNORED = Metric(
    "smg_node_mesh_datagrams_ignored_total",
    "counter",
    "Datagrams for others, of strangers, or of this node itself.",
    ("reason",),
    pulled=True,
)
MESH_RELAYED = Metric(
    "smg_node_mesh_relayed_probes_total",
    "counter",
    "Probes made because another member asked for them.",
    pulled=True,
)
MESH_EXCHANGES = Metric(
    "smg_node_mesh_exchanges_total",
    "counter",
    "Exchanges of the whole table that this node opened, by why.",
    ("reason",),
    pulled=True,
)
MESH_EXCHANGE_ENDS = Metric(
    "smg_node_mesh_exchanges_ended_total",
    "counter",
    "How they ended: ok, failed, or not begun because too many wait (dropped) or run (refused).",
    ("outcome",),
    pulled=True,
)
MESH_STREAMS_SERVED = Metric(
    "smg_node_mesh_streams_served_total",
    "counter",
    "Calls of other members that this node took: ping, exchange, ask.",
    ("kind",),
    pulled=True,
)
MESH_STREAMS_REFUSED = Metric(
    "smg_node_mesh_streams_refused_total",
    "counter",
    "Calls of others that this node refused, by reason.",
    ("reason",),
    pulled=True,
)
MESH_STREAMS_FAILED = Metric(
    "smg_node_mesh_streams_failed_total",
    "counter",
    "Calls to others that came to nothing, by reason: key, unreachable, deadline and others.",
    ("reason",),
    pulled=True,
)
MESH_FAULTS = Metric(
    "smg_node_mesh_faults_total",
    "counter",
    "Inputs and calls that failed because of a mistake of ours.",
    ("where",),
    pulled=True,
)
MESH_SNAPSHOTS = Metric(
    "smg_node_mesh_snapshots_total",
    "counter",
    "Times the peers were written to disk, by outcome.",
    ("outcome",),
    pulled=True,
)
MESH_OTHER = Metric(
    "smg_node_mesh_other_total",
    "counter",
    "Whatever else the mesh counts, by its own name for it.",
    ("what", "detail"),
    pulled=True,
)

MESH_METRICS: Final[tuple[Metric, ...]] = (
    MESH_MEMBERS,
    MESH_HEALTH,
    MESH_JOINED,
    MESH_ISOLATED,
    MESH_PROBES,
    MESH_UDP_BLOCKED,
    MESH_ROUND_TRIPS,
    MESH_DOUBTS,
    MESH_DEATHS,
    MESH_ACCUSATIONS,
    MESH_RETURNS,
    MESH_TOLD,
    MESH_LIVES,
    MESH_STALLS,
    MESH_STALL_SECONDS,
    MESH_DATAGRAMS,
    MESH_DATAGRAM_BYTES,
    MESH_LOST,
    MESH_REFUSED,
    MESH_IGNORED,
    MESH_RELAYED,
    MESH_EXCHANGES,
    MESH_EXCHANGE_ENDS,
    MESH_STREAMS_SERVED,
    MESH_STREAMS_REFUSED,
    MESH_STREAMS_FAILED,
    MESH_FAULTS,
    MESH_SNAPSHOTS,
    MESH_OTHER,
)
