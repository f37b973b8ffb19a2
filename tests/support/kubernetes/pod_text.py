"""Pods as an API server writes them, for pure tests: invented, in the form of real ones."""

import json
from collections.abc import Mapping, Sequence
from typing import Any


def pod(
    name: str = "vllm-0",
    *,
    ip: str = "10.1.0.1",
    phase: str = "Running",
    ready: str = "True",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    uid: str = "",
    version: str = "7",
    deleted: bool = False,
    created: str = "2026-11-01T10:00:00Z",
    ports: Sequence[tuple[str, int]] = (("grpc", 50051),),
    **status: Any,
) -> dict[str, Any]:
    """Return a pod; what is not said is that of a ready one."""
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": "serving",
        "uid": uid or f"uid-of-{name}",
        "resourceVersion": version,
        "creationTimestamp": created,
        "labels": dict({"app": "vllm"} if labels is None else labels),
        "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:status": {}}}],
    }
    if annotations is not None:
        metadata["annotations"] = dict(annotations)
    if deleted:
        metadata |= {
            "deletionTimestamp": "2026-11-01T11:00:00Z",
            "deletionGracePeriodSeconds": 30,
        }
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": metadata,
        "spec": {
            "nodeName": "node-1",
            "containers": [
                {
                    "name": "engine",
                    "image": "engine:1",
                    "ports": [
                        {"name": it, "containerPort": port, "protocol": "TCP"} for it, port in ports
                    ],
                }
            ],
        },
        "status": {
            "phase": phase,
            "conditions": [
                {"type": "PodScheduled", "status": "True", "lastProbeTime": None},
                {"type": "Ready", "status": ready},
            ],
            **({"podIP": ip, "podIPs": [{"ip": ip}]} if ip else {}),
            **status,
        },
    }


def a_list(*pods: Mapping[str, Any], version: str = "7", more: str = "") -> bytes:
    """Return a page of a list."""
    metadata = {"resourceVersion": version, **({"continue": more} if more else {})}
    said = {"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": list(pods)}
    return json.dumps(said).encode()


def event(kind: str, thing: Mapping[str, Any]) -> bytes:
    """Return a line of a watch."""
    return json.dumps({"type": kind, "object": thing}).encode() + b"\n"


def bookmark(version: str) -> bytes:
    """Return a bookmark."""
    metadata = {"resourceVersion": version, "creationTimestamp": None}
    thing = {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "status": {}}
    return event("BOOKMARK", {**thing, "spec": {"containers": None}})


def expired() -> bytes:
    """Return the line that ends a watch whose version is known no more."""
    said = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return event(
        "ERROR",
        {
            **said,
            "message": "too old resource version: 5 (100)",
            "reason": "Expired",
            "code": 410,
        },
    )
