"""Alerts, each declared once: the Prometheus rules, their tests and the operator's page come from
here.
"""

from typing import Final

from smg_node.telemetry.prometheus.alert import Alert, Example

_EXPIRES: Final = 'smg_node_tls_certificate_expires_seconds{instance="a:29000",pair="default"}'
_RENEW: Final = (
    "Replace the files that `http.tls` names: they are taken within two seconds. If they have been replaced, "
    "the node's log says why it kept the old ones."
)
ALERTS = (
    Alert(
        name="SmgNodeDown",
        severity="critical",
        expression='up{job="smg-node"} == 0',
        wait_s=60,
        summary="Node {{ $labels.instance }} does not answer Prometheus.",
        meaning="The process is gone, hangs, or its metrics port cannot be reached. The others go on without it.",
        action="Ask another node: `smg-admin cluster members`. If it is dead there too, read its log and start it again "
        "under the same name; if it is alive there, only the way from Prometheus to port 29000 is broken.",
        example=Example(
            fires={'up{job="smg-node",instance="a:29000"}': "0x20"},
            quiet={'up{job="smg-node",instance="a:29000"}': "1x20"},
        ),
    ),
    Alert(
        name="SmgNoWorkersReady",
        severity="critical",
        expression="sum by (instance) (smg_node_workers_ready) == 0",
        wait_s=60,
        summary="Node {{ $labels.instance }} has no worker that may be given work.",
        meaning="Every generation waits, and is refused with 503 once its time in line is up.",
        action="`smg-admin workers list` says of each worker why it is not ready. Where all nodes see the same, look at "
        "the engines; where one does, at its way to them.",
        example=Example(
            fires={'smg_node_workers_ready{instance="a:29000",role="regular"}': "0x20"},
            quiet={
                'smg_node_workers_ready{instance="a:29000",role="regular"}': "0x20",
                'smg_node_workers_ready{instance="a:29000",role="prefill"}': "1x20",
            },
        ),
    ),
    Alert(
        name="SmgGenerationsFailing",
        severity="critical",
        expression='sum by (model) (rate(smg_node_generations_total{outcome="failed"}[5m])) '
        "/ sum by (model) (rate(smg_node_generations_total[5m])) > 0.05",
        wait_s=300,
        summary="More than one in twenty generations of {{ $labels.model }} fails.",
        meaning="Retries and continuations could not save them: engines fail faster than there are others to go on at.",
        action="`smg_node_generations_total` by `code` says how they fail, `smg_node_engine_errors_total` what engines "
        "said; `smg-admin explain REQUEST_ID` tells the way of one of them.",
        example=Example(
            fires={
                'smg_node_generations_total{model="m",outcome="failed"}': "0+10x30",
                'smg_node_generations_total{model="m",outcome="ok"}': "0+90x30",
            },
            quiet={
                'smg_node_generations_total{model="m",outcome="failed"}': "0+1x30",
                'smg_node_generations_total{model="m",outcome="ok"}': "0+99x30",
            },
        ),
    ),
    Alert(
        name="SmgBreakerOpen",
        severity="warning",
        expression="smg_node_worker_breaker_state == 2",
        wait_s=120,
        summary="Node {{ $labels.instance }} passes worker {{ $labels.worker }} over.",
        meaning="Its calls there failed, and tries since have not gone better.",
        action="Look at the engine's log. Only one node says so? Then look at the network between the two.",
        example=Example(
            fires={'smg_node_worker_breaker_state{instance="a:29000",worker="w"}': "2x20"},
            quiet={'smg_node_worker_breaker_state{instance="a:29000",worker="w"}': "1x20"},
        ),
    ),
    Alert(
        name="SmgWorkerStuck",
        severity="critical",
        expression="smg_node_worker_stuck == 1",
        wait_s=120,
        summary="Worker {{ $labels.worker }} has work and says nothing.",
        meaning="The engine accepts calls and makes no tokens, as after a hung kernel or a lost rank.",
        action="`smg-admin workers drain` it, then restart the engine. Answers that had begun go on elsewhere.",
        example=Example(
            fires={'smg_node_worker_stuck{instance="a:29000",worker="w"}': "1x20"},
            quiet={'smg_node_worker_stuck{instance="a:29000",worker="w"}': "0x20"},
        ),
    ),
    Alert(
        name="SmgQueueOverflows",
        severity="warning",
        expression='sum by (model) (rate(smg_node_queue_requests_total{outcome=~"refused|expired"}[5m])) > 0',
        wait_s=300,
        summary="Requests for {{ $labels.model }} are turned away after waiting in line.",
        meaning="All its workers are full, and have been for minutes.",
        action="Add workers (`smg-admin workers add URL`), or limit who asks for most: `smg-admin usage --by tenant,model`.",
        example=Example(
            fires={'smg_node_queue_requests_total{model="m",outcome="expired"}': "0+2x30"},
            quiet={'smg_node_queue_requests_total{model="m",outcome="served"}': "0+2x30"},
        ),
    ),
    Alert(
        name="SmgMeshIsolated",
        severity="critical",
        expression="smg_node_mesh_isolated == 1",
        wait_s=60,
        summary="Node {{ $labels.instance }} believes that it is cut off from the cluster.",
        meaning="It answers, with the state it last knew and with its own rights to spend limits.",
        action="Port 7946 must be open between all nodes, UDP and TCP, both ways. It heals by itself when it is.",
        example=Example(
            fires={'smg_node_mesh_isolated{instance="a:29000"}': "1x20"},
            quiet={'smg_node_mesh_isolated{instance="a:29000"}': "0x20"},
        ),
    ),
    Alert(
        name="SmgMembersDisagree",
        severity="warning",
        expression='max by (job) (smg_node_mesh_members{state="alive"}) '
        '!= min by (job) (smg_node_mesh_members{state="alive"})',
        wait_s=120,
        summary="Nodes do not see the same number of living members.",
        meaning="A partition, or a node that some can reach and others cannot. Joins and deaths agree within seconds.",
        action="Compare `smg-admin --url NODE cluster members` on both sides; look at the network between them.",
        example=Example(
            fires={
                'smg_node_mesh_members{job="smg-node",instance="a:29000",state="alive"}': "3x20",
                'smg_node_mesh_members{job="smg-node",instance="b:29000",state="alive"}': "2x20",
            },
            quiet={
                'smg_node_mesh_members{job="smg-node",instance="a:29000",state="alive"}': "3x20",
                'smg_node_mesh_members{job="smg-node",instance="b:29000",state="alive"}': "3x20",
            },
        ),
    ),
    Alert(
        name="SmgMeshUdpBlocked",
        severity="warning",
        expression="rate(smg_node_mesh_udp_blocked_total[5m]) > 0",
        wait_s=600,
        summary="Datagrams of node {{ $labels.instance }} do not arrive; only TCP does.",
        meaning="The mesh lives on its second way: deaths are noticed later, and changes spread more slowly.",
        action="Let UDP port 7946 through, both ways, between all nodes.",
        example=Example(
            fires={'smg_node_mesh_udp_blocked_total{instance="a:29000"}': "0+3x30"},
            quiet={'smg_node_mesh_udp_blocked_total{instance="a:29000"}': "7x30"},
        ),
    ),
    Alert(
        name="SmgStateUnsaved",
        severity="warning",
        expression="smg_node_state_unsaved > 0",
        wait_s=600,
        summary="Node {{ $labels.instance }} cannot write shared state to its disk.",
        meaning="Nothing is lost while one node lives; after a restart of all of them the newest changes would be.",
        action="Look at the disk below `--data-dir`: full, read-only, or failing.",
        example=Example(
            fires={'smg_node_state_unsaved{instance="a:29000"}': "2x30"},
            quiet={'smg_node_state_unsaved{instance="a:29000"}': "0x30"},
        ),
    ),
    Alert(
        name="SmgStoreAway",
        severity="critical",
        expression="smg_node_store_up == 0",
        wait_s=60,
        summary="Node {{ $labels.instance }} does not reach the store of history.",
        meaning="Requests that need what was said before get 503; new turns wait on the node's own disk.",
        action="Look at the database, then `smg-admin db status`. Nothing has to be done here once it is back.",
        example=Example(
            fires={'smg_node_store_up{instance="a:29000"}': "0x20"},
            quiet={'smg_node_store_up{instance="a:29000"}': "1x20"},
        ),
    ),
    Alert(
        name="SmgSpoolRefused",
        severity="critical",
        expression="increase(smg_node_store_spool_refused_total[10m]) > 0",
        wait_s=0,
        summary="Node {{ $labels.instance }} could keep turns neither in the store nor on its disk.",
        meaning="Those requests failed. This goes on until one of the two takes turns again.",
        action="Make room below `--data-dir`, and bring the store back.",
        example=Example(
            fires={'smg_node_store_spool_refused_total{instance="a:29000"}': "0+1x30"},
            quiet={'smg_node_store_spool_refused_total{instance="a:29000"}': "4x30"},
        ),
    ),
    Alert(
        name="SmgDeadTurns",
        severity="warning",
        expression="smg_node_store_dead_turns > 0",
        wait_s=300,
        summary="Node {{ $labels.instance }} holds turns that the store does not take.",
        meaning="They were acknowledged, and are on that node's disk only. Do not throw its volume away.",
        action="`smg-admin db dead list` shows them and why.",
        example=Example(
            fires={'smg_node_store_dead_turns{instance="a:29000"}': "1x20"},
            quiet={'smg_node_store_dead_turns{instance="a:29000"}': "0x20"},
        ),
    ),
    Alert(
        name="SmgProcessLost",
        severity="warning",
        expression="increase(smg_node_processes_lost_total[15m]) > 0",
        wait_s=0,
        summary="A data process of node {{ $labels.instance }} ended without having been told to.",
        meaning="Its streams were cut off; another one has taken its place.",
        action="Read the node's log, and the kernel's for a process killed for its memory.",
        example=Example(
            fires={'smg_node_processes_lost_total{instance="a:29000"}': "0x15 1x15"},
            quiet={'smg_node_processes_lost_total{instance="a:29000"}': "1x30"},
        ),
    ),
    Alert(
        name="SmgLoopStalls",
        severity="warning",
        expression="rate(smg_node_loop_stalls_total[5m]) > 0.1",
        wait_s=600,
        summary="The event loop of node {{ $labels.instance }} is often late by over 100 ms.",
        meaning="The node has too little CPU, or its machine stands still: streams stutter, and peers begin to doubt it.",
        action="Give it more CPU, lift a CPU limit that throttles it, or add nodes.",
        example=Example(
            fires={'smg_node_loop_stalls_total{instance="a:29000"}': "0+30x30"},
            quiet={'smg_node_loop_stalls_total{instance="a:29000"}': "0+1x30"},
        ),
    ),
    Alert(
        name="SmgUsageLost",
        severity="critical",
        expression="increase(smg_node_usage_lost_total[1h]) > 0",
        wait_s=0,
        summary="Node {{ $labels.instance }} gave up rows of usage.",
        meaning="Its disk took nothing for two days: bills by tenant will be too low.",
        action="Mend the disk below `--data-dir`; what was lost is lost.",
        example=Example(
            fires={'smg_node_usage_lost_total{instance="a:29000"}': "0x15 5x15"},
            quiet={'smg_node_usage_lost_total{instance="a:29000"}': "5x30"},
        ),
    ),
    Alert(
        name="SmgCertificateExpiresSoon",
        severity="warning",
        expression="min by (instance, pair) (smg_node_tls_certificate_expires_seconds) < 1209600",
        wait_s=600,
        summary="Certificate {{ $labels.pair }} of node {{ $labels.instance }} is good for less than two weeks.",
        meaning="Clients will refuse the node's API the moment it expires.",
        action=_RENEW,
        example=Example(
            fires={_EXPIRES: "1000000x120"},
            quiet={_EXPIRES: "2000000x120"},
        ),
    ),
    Alert(
        name="SmgCertificateExpires",
        severity="critical",
        expression="min by (instance, pair) (smg_node_tls_certificate_expires_seconds) < 172800",
        wait_s=0,
        summary="Certificate {{ $labels.pair }} of node {{ $labels.instance }} is good for less than two days, if at all.",
        meaning="Clients will refuse the node's API the moment it expires.",
        action=_RENEW,
        example=Example(
            fires={_EXPIRES: "100000x30"},
            quiet={_EXPIRES: "200000x30"},
        ),
    ),
    Alert(
        name="SmgCertificateRefused",
        severity="warning",
        expression="increase(smg_node_tls_reload_failures_total[1h]) > 0",
        wait_s=0,
        summary="Node {{ $labels.instance }} could not use renewed certificate files.",
        meaning="It goes on with the old ones, until they expire.",
        action="Its log names the file and what is wrong with it.",
        example=Example(
            fires={'smg_node_tls_reload_failures_total{instance="a:29000"}': "0x15 1x15"},
            quiet={'smg_node_tls_reload_failures_total{instance="a:29000"}': "1x30"},
        ),
    ),
    Alert(
        name="SmgDiscoveryBlind",
        severity="warning",
        expression="max by (source) (smg_node_discovery_failing) == 1 "
        "unless on (source) (smg_node_discovery_view_age_seconds < 300)",
        wait_s=300,
        summary="{{ $labels.source }} was not seen whole for five minutes, by no node that has it.",
        meaning="Its workers stay, and health checks decide about each; engines that have come or gone since are not known.",
        action="`smg-admin discovery status` shows what the source answers, such as a right that is missing, or what is wrong "
        "with a node's own list (`file@NODE`), and since when.",
        example=Example(
            fires={
                'smg_node_discovery_failing{instance="a:29000",source="file@a"}': "1x40",
                'smg_node_discovery_failing{instance="b:29000",source="file@b"}': "0x40",
                'smg_node_discovery_view_age_seconds{instance="a:29000",source="file@a"}': "330+30x40",
                'smg_node_discovery_view_age_seconds{instance="b:29000",source="file@b"}': "20x40",
            },
            quiet={
                'smg_node_discovery_failing{instance="a:29000",source="kubernetes/chat"}': "1x40",
                'smg_node_discovery_view_age_seconds{instance="b:29000",source="kubernetes/chat"}': "40x40",
            },
        ),
    ),
    Alert(
        name="SmgDiscoveryEmpty",
        severity="critical",
        expression="max by (source) (smg_node_discovery_held) > 0",
        wait_s=0,
        summary="{{ $labels.source }} shows no engine any more, though some of its workers answer.",
        meaning="Its workers are kept for `discovery.empty_confirm_s` and then given up.",
        action="If that is not meant, correct its selector, name or list: `smg-admin discovery status` says what is kept. "
        "Raise `discovery.empty_confirm_s` to have longer.",
        example=Example(
            fires={'smg_node_discovery_held{instance="a:29000",source="dns/metal"}': "4x20"},
            quiet={'smg_node_discovery_held{instance="a:29000",source="dns/metal"}': "0x20"},
        ),
    ),
    Alert(
        name="SmgDiscoveryUnwritten",
        severity="warning",
        expression="sum by (source) (smg_node_discovery_writer) == 0",
        wait_s=300,
        summary="No node takes up what {{ $labels.source }} shows.",
        meaning="Its workers stay as they are; engines that come or go are not noticed.",
        action="`smg-admin discovery status` says of each node why it does not: without the right or the way to the source, "
        "leaving, or not joined.",
        example=Example(
            fires={
                'smg_node_discovery_writer{instance="a:29000",source="kubernetes/chat"}': "0x40",
                'smg_node_discovery_writer{instance="b:29000",source="kubernetes/chat"}': "0x40",
            },
            quiet={
                'smg_node_discovery_writer{instance="a:29000",source="kubernetes/chat"}': "0x40",
                'smg_node_discovery_writer{instance="b:29000",source="kubernetes/chat"}': "1x40",
            },
        ),
    ),
    Alert(
        name="SmgDiscoveryUnusable",
        severity="warning",
        expression="max by (source) (smg_node_discovery_unusable) > 0",
        wait_s=600,
        summary="{{ $labels.source }} shows something that is no worker, or only in part.",
        meaning="An engine that should serve may be left out, such as a pod with a wrong annotation.",
        action="`smg-admin discovery status` names each, and what is wrong with it.",
        example=Example(
            fires={'smg_node_discovery_unusable{instance="a:29000",source="file@a"}': "1x60"},
            quiet={'smg_node_discovery_unusable{instance="a:29000",source="file@a"}': "0x60"},
        ),
    ),
    Alert(
        name="SmgLimitOverspent",
        severity="critical",
        expression="increase(smg_node_rights_differences_total[1h]) > 0",
        wait_s=0,
        summary="More was spent than a limit allows.",
        meaning="This cannot be without a mistake in this software.",
        action="Keep the log of the node that says so, which has the reckoning, and report it.",
        example=Example(
            fires={'smg_node_rights_differences_total{instance="a:29000"}': "0x15 1x15"},
            quiet={'smg_node_rights_differences_total{instance="a:29000"}': "0x30"},
        ),
    ),
)
