"""Rules of pods that an API server keeps without any node: what is filled in, patched, and how a pod ends."""

import copy
from collections.abc import Mapping
from typing import Any, Final

from smg_chaos.kubernetes.answers import RefusedError

GRACE_S: Final = 30
_STATUS: Final = "status"


def created(said: Mapping[str, Any], *, namespace: str, uid: str, now: str) -> dict[str, Any]:
    """Return a new pod, pending; RefusedError if it has no name."""
    pod = copy.deepcopy(dict(said))
    metadata = pod.setdefault("metadata", {})
    if not isinstance(metadata.get("name"), str) or not metadata["name"]:
        raise RefusedError(
            422, "Invalid", "Pod is invalid: metadata.name: Required value: name is required"
        )
    for key in ("labels", "annotations"):
        if not metadata.get(key):
            metadata.pop(key, None)
    metadata |= {"namespace": namespace, "uid": uid, "creationTimestamp": now}
    spec = pod.setdefault("spec", {})
    spec.setdefault("terminationGracePeriodSeconds", GRACE_S)
    for container in spec.get("containers", ()):
        for port in container.get("ports", ()):
            port.setdefault("protocol", "TCP")
    pod[_STATUS] = {"phase": "Pending", "qosClass": "BestEffort"}
    return {"kind": "Pod", "apiVersion": "v1", **pod}


def patched(pod: Mapping[str, Any], patch: Mapping[str, Any], *, is_status: bool) -> dict[str, Any]:
    """Return a pod after a merge patch of its status, or of anything else."""
    wanted = {key: it for key, it in patch.items() if (key == _STATUS) == is_status}
    after = merged(pod, wanted)
    status = after.get(_STATUS, {})
    listed = status.get("podIPs")
    if status.get("podIP") and (not listed or listed[0].get("ip") != status["podIP"]):
        # Of the two the older field is believed.
        status["podIPs"] = [{"ip": status["podIP"]}]
    return after


def merged(before: Any, patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return `before` with a JSON merge patch (RFC 7386)."""
    after = copy.deepcopy(dict(before)) if isinstance(before, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            after.pop(key, None)
        elif isinstance(value, Mapping):
            after[key] = merged(after.get(key), value)
        else:
            after[key] = value
    return after


def grace_s(pod: Mapping[str, Any], asked: int | None) -> int:
    """Return how long a pod has to end: none where no node runs it, or it ended already."""
    if not pod["spec"].get("nodeName") or pod[_STATUS].get("phase") in ("Succeeded", "Failed"):
        return 0
    return int(pod["spec"]["terminationGracePeriodSeconds"]) if asked is None else asked


def terminating(pod: Mapping[str, Any], seconds: int, until: str) -> dict[str, Any]:
    """Return a pod whose end is ordered."""
    after = copy.deepcopy(dict(pod))
    after["metadata"] |= {"deletionTimestamp": until, "deletionGracePeriodSeconds": seconds}
    return after
