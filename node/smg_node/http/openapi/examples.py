"""Examples for `/openapi.json`: one of each body and answer that operators write and read."""

from collections.abc import Mapping
from typing import Any, Final

from smg_node.http.openapi.access.keys import ACCESS_EXAMPLES, KEY_EXAMPLES
from smg_node.http.openapi.access.roles import ROLE_EXAMPLES
from smg_node.http.openapi.cluster_metrics import NUMBERS_EXAMPLES
from smg_node.http.openapi.drain import DRAIN_EXAMPLES
from smg_node.http.openapi.explain import EXPLAIN_EXAMPLE
from smg_node.http.openapi.history import HISTORY_EXAMPLES
from smg_node.http.openapi.limits import LIMIT_EXAMPLES
from smg_node.http.openapi.providers import PROVIDER_EXAMPLES
from smg_node.http.openapi.tool_servers import TOOL_SERVER_EXAMPLES
from smg_node.http.openapi.usage import USAGE_EXAMPLES
from smg_node.http.openapi.workers import DISCOVERY_EXAMPLES

_ID: Final = "w-7f3a91c0d2e4"
_URL: Final = "grpc://10.0.0.7:30100"
_MODEL: Final = "llama-3.1-8b"
_VERSION: Final = "114950651904458752"
_CHANGE: Final = "0198630efa400000-a"
_MS: Final = 1_754_000_000_000

_STATE: Final = {"hash": "5d1be4c3f08a7722", "effective": "a9930c4411ff0042"}
_CONFIG: Final = {
    "hash": _STATE["hash"],
    "effective_hash": _STATE["effective"],
    "same": True,
    "members": {"a": _STATE, "b": _STATE},
}
_SETTING: Final = {
    "key": "routing.policy",
    "is_set": True,
    "value": "round_robin",
    "version": _VERSION,
    "owner": "b",
    "time_ms": _MS,
    "own": "cache_aware",
    "effective": "round_robin",
    "source": "cluster",
    "ignored": "",
    "conflicts": [],
    "about": {
        "kind": "choice",
        "range": "cache_aware | least_load | power_of_two | random | round_robin",
        "default": "cache_aware",
        "help": "Rule that picks a worker among the ready ones.",
    },
}
_WORKER: Final = {
    "id": _ID,
    "url": _URL,
    "model": _MODEL,
    "contract": "sglang",
    "role": "regular",
    "status": "ready",
    "reason": "",
    "inflight": 3,
    "labels": {"rack": "r2"},
    "details": {"context": 131072},
    "priority": 50,
    "cost": 1.0,
    "has_key": False,
    "sources": ["api"],
    "owner": "a",
    "seen_by": ["a", "b", "c"],
    "busy": {
        "running": 12,
        "waiting": 1,
        "waiting_tokens": 2300,
        "kv_usage": 0.41,
        "tokens_per_s": 910.0,
        "age_ms": 380,
        "pushed": True,
        "follows_cache": True,
        "wait_ms": 210,
        "prefill_tokens_per_s": 11800,
        "capacity": 64,
        "overloaded": False,
        "full": False,
        "stuck": False,
    },
    "breaker": {
        "state": "closed",
        "why": "",
        "samples": 41,
        "failures": 0,
        "opened": 0,
        "pressure": 0,
        "again_ms": None,
    },
    "ranks": 1,
    "pairing": "",
    "bootstrap_port": None,
    "model_id": _MODEL,
    "worker_type": "regular",
    "connection_mode": "grpc",
    "runtime_type": "sglang",
    "is_healthy": True,
    "load": 3,
}
_CLUSTER_WORKER: Final = {
    "id": _ID,
    "url": _URL,
    "model": _MODEL,
    "role": "regular",
    "contract": "sglang",
    "priority": 50,
    "cost": 1.0,
    "labels": {"rack": "r2"},
    "has_key": False,
    "draining": False,
    "sources": ["api", "static@c"],
    "registered_by": "a",
    "version": _VERSION,
    "status": "ready",
    "reason": "",
    "probers": ["a", "b", "c"],
    "sights": {"b": {"up": True, "reason": "", "age_ms": 820}},
    "requests_mine": 3,
    "tokens_mine": 2048,
    "requests_others": 5,
    "tokens_others": 4096,
    "load_age_ms": 240,
}
_NAMESPACE: Final = {
    "name": "settings",
    "digest": "9c2f10ab77d31e05",
    "entries": 4,
    "bytes": 812,
    "documents": 4,
    "epoch": 0,
}
_PEERS: Final = {"b": {"same": True, "differs": [], "error": ""}}
_ROW: Final = {
    "id": _CHANGE,
    "time_ms": _MS,
    "node": "a",
    "who": "loopback",
    "address": "127.0.0.1",
    "action": "setting.set",
    "subject": "routing.policy",
    "before": None,
    "after": {"value": "round_robin"},
    "request_id": "req_0198630efa40",
}
_SESSION: Final = {
    "id": "4be1d2f39a07c655",
    "worker": _ID,
    "why": "least_load",
    "node": "a",
    "age_ms": 42_000,
    "expires_ms": 14_358_000,
}

EXAMPLES: Final[Mapping[str, Any]] = {
    **HISTORY_EXAMPLES,
    **DRAIN_EXAMPLES,
    **DISCOVERY_EXAMPLES,
    **KEY_EXAMPLES,
    **ACCESS_EXAMPLES,
    **ROLE_EXAMPLES,
    **LIMIT_EXAMPLES,
    **PROVIDER_EXAMPLES,
    **TOOL_SERVER_EXAMPLES,
    **USAGE_EXAMPLES,
    **NUMBERS_EXAMPLES,
    "WorkerRequest": {
        "url": _URL,
        "model_id": _MODEL,
        "worker_type": "prefill",
        "bootstrap_port": 8998,
        "priority": 50,
        "cost": 1.0,
        "labels": {"rack": "r2"},
    },
    "WorkerPatch": {"priority": 80, "labels": {"rack": "r3"}, "status": "draining"},
    "Accepted": {
        "status": "accepted",
        "worker_id": _ID,
        "url": _URL,
        "location": f"/workers/{_ID}",
        "message": "it gets requests once it is ready",
    },
    "Worker": _WORKER,
    "WorkerList": {
        "workers": [_WORKER],
        "total": 1,
        "stats": {
            "total": 1,
            "by_status": {"ready": 1},
            "inflight": 3,
            "total_workers": 1,
            "healthy_workers": 1,
            "total_models": 1,
            "total_load": 3,
            "by_type": {"regular": 1, "prefill": 0, "decode": 0, "encode": 0},
        },
    },
    "ClusterWorkerList": {"workers": [_CLUSTER_WORKER], "total": 1},
    "State": {
        "node": "a",
        "held": True,
        "digest": "71c0ffee08a1b2c3",
        "namespaces": [_NAMESPACE],
        "members": _PEERS,
    },
    "NamespaceState": {
        "node": "a",
        "held": True,
        "namespace": _NAMESPACE,
        "members": {"b": {"same": True, "error": ""}},
    },
    "Setting": _SETTING,
    "SettingList": {"node": "a", **_CONFIG, "settings": [_SETTING]},
    "SettingRequest": {"value": "round_robin"},
    "SettingDifferences": {
        "node": "a",
        "with": "cluster",
        "differences": [
            {
                "key": "routing.policy",
                "left": "cache_aware",
                "left_source": "default",
                "right": "round_robin",
                "right_source": "cluster",
            }
        ],
    },
    "SettingHistory": {
        "changes": [
            {
                "id": _CHANGE,
                "time_ms": _MS,
                "node": "a",
                "who": "loopback",
                "address": "127.0.0.1",
                "action": "setting.set",
                "key": "routing.policy",
                "before": None,
                "after": "round_robin",
                "whole": True,
            }
        ]
    },
    "SettingValues": {"settings": {"routing.policy": "round_robin", "workers.retry_s": 2}},
    "Validation": {"valid": True, "problems": []},
    "RollbackRequest": {"change": _CHANGE},
    "Restored": {"restored": [_SETTING]},
    "AuditList": {"rows": [_ROW]},
    "Session": _SESSION,
    "Explained": EXPLAIN_EXAMPLE,
    "SessionEnded": {"status": "ended", "session": _SESSION},
    "JoinRequest": {"peers": ["10.0.0.8:7946"]},
    "KeyringRequest": {"operation": "use", "key": "aabbccdd"},
}
