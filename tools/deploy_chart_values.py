"""Values that the Helm chart is installed with by `deploy_chart.py`, those that it refuses, and the rights that come of them."""

from typing import Any

CASES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "everything": {
        "workers": ["grpc://vllm-0.vllm:50051", "grpc://vllm-1.vllm:50051?role=prefill"],
        "config": {"routing": {"policy": "least_load"}},
        "processes": 2,
        "mesh": {"existingSecret": "mesh"},
        "auth": {"existingSecret": "admin"},
        "admin": {"socket": True},
        "tls": {"existingSecret": "certificate", "host": "llm.example", "metrics": True},
        "storage": {"existingSecret": "database"},
        "autoscaling": {"enabled": True},
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "networkPolicy": {
            "httpFrom": [{"namespaceSelector": {}}],
            "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}],
        },
        "podLabels": {"team": "serving"},
        "podAnnotations": {"note": "yes"},
        "extraEnv": [{"name": "SMG_TELEMETRY__LOG_LEVEL", "value": "debug"}],
        "extraArgs": ["--policy=round_robin"],
        "extraVolumes": [{"name": "more", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
        "imagePullSecrets": [{"name": "registry"}],
        "nodeSelector": {"pool": "cpu"},
        "tolerations": [{"operator": "Exists"}],
        "priorityClassName": "system-cluster-critical",
        "persistence": {"storageClassName": "fast"},
        "service": {"type": "LoadBalancer", "annotations": {"a": "b"}},
    },
    "workers found": {
        "discovery": {
            "kubernetes": {
                "chat": {"selector": "app=vllm,tier in (chat)", "port": 50051, "scheme": "grpc"},
                "batch": {"selector": "app=vllm", "namespace": "batch", "port": "grpc"},
                "slices": {"service": "vllm", "namespace": "batch"},
            }
        },
        "config": {"discovery": {"empty_confirm_s": 10}},
        "networkPolicy": {
            "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}],
            "apiServer": {"cidrs": ["10.96.0.1/32"], "ports": [6443]},
        },
    },
    "workers found everywhere": {
        "config": {"discovery": {"kubernetes": {"all": {"selector": "app", "namespace": "*"}}}},
        "networkPolicy": {"egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]},
        "serviceAccount": {"create": False, "name": "ours"},
    },
    "peers found": {
        "config": {
            "mesh": {"kubernetes_selector": "app in (gateway)", "kubernetes_namespace": "gateways"},
            "http": {"admin_listen": "0.0.0.0:30001"},
        },
        "networkPolicy": {
            "httpFrom": [{"namespaceSelector": {}}],
            "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}],
        },
    },
    "pods by role": {
        "config": {"discovery": {"pods": {"enabled": True, "selector": ["app=vllm"]}}},
        "networkPolicy": {"enabled": False},
    },
    "one alone": {
        "replicaCount": 1,
        "mesh": {"insecure": True},
        "storage": {"url": "postgresql://smg:secret@db/smg"},
        "persistence": {"enabled": False},
        "networkPolicy": {"enabled": False, "metricsFrom": []},
        "podDisruptionBudget": {"enabled": False},
        "serviceAccount": {"create": False},
    },
}
REFUSED: dict[str, dict[str, Any]] = {
    "an unknown name": {"replicas": 3},
    "a number that is none": {"replicaCount": "three"},
    "a source that selects nothing": {"discovery": {"kubernetes": {"chat": {"port": 50051}}}},
    "a source twice": {"discovery": {"kubernetes": {"a": {"selector": "a", "service": "b"}}}},
    "a word that means nothing": {"image": {"pullPolicy": "Sometimes"}},
}
# By case: roles with their namespaces and what they are for, and whether the account's token is mounted.
RIGHTS = {
    "defaults": ([], False),
    "everything": ([], False),
    "workers found": (
        [("Role", "batch", ["pods", "endpointslices"]), ("Role", "serving", ["pods"])],
        True,
    ),
    "workers found everywhere": ([("ClusterRole", "", ["pods"])], True),
    "peers found": ([("Role", "gateways", ["pods"])], True),
    "pods by role": ([("ClusterRole", "", ["pods"])], True),
    "one alone": ([], False),
}
