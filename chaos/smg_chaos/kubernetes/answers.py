"""Answers of the API server in its own words: lists, lines of watches, and refusals."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "pods": ("v1", "Pod"),
    "endpointslices": ("discovery.k8s.io/v1", "EndpointSlice"),
}
"""API version and kind by resource."""

_TOO_OLD_TO_GO_ON: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
_MORE_ON_THE_KIND: Final = {"pods": {"spec": {"containers": None}, "status": {}}}


@dataclass(frozen=True)
class RefusedError(Exception):
    """An answer that is an error: its status, its reason in one word, and what it says."""

    code: int
    reason: str
    message: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)

    def object(self) -> dict[str, Any]:
        """Return it as the API's object."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": dict(self.metadata),
            "status": "Failure",
            "message": self.message,
            **({"reason": self.reason} if self.reason else {}),
            **({"details": dict(self.details)} if self.details else {}),
            "code": self.code,
        }


def unauthorized() -> RefusedError:
    """Return the refusal of a token that is not known."""
    return RefusedError(401, "Unauthorized", "Unauthorized")


def forbidden(verb: str, resource: str, namespace: str, user: str = "watcher") -> RefusedError:
    """Return the refusal of one who has no right to do that there; an empty namespace is all of them."""
    group = KINDS[resource][0].rpartition("/")[0]
    scope = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    message = f'{resource} is forbidden: User "{user}" cannot {verb} resource "{resource}" in API group "{group}" {scope}'
    return RefusedError(403, "Forbidden", message, details={"kind": resource})


def not_found(resource: str, name: str) -> RefusedError:
    """Return the refusal where there is no such object."""
    return RefusedError(
        404, "NotFound", f'{resource} "{name}" not found', details={"name": name, "kind": resource}
    )


def expired(version: int, current: int) -> RefusedError:
    """Return the refusal of a version that was compacted."""
    return RefusedError(410, "Expired", f"too old resource version: {version} ({current})")


def expired_continue(token: str) -> RefusedError:
    """Return the refusal of a page whose version was compacted, with what would go on without being whole."""
    return RefusedError(410, "Expired", _TOO_OLD_TO_GO_ON, metadata={"continue": token})


def page(
    resource: str, items: Sequence[Mapping[str, Any]], version: int, token: str, left: int | None
) -> dict[str, Any]:
    """Return a page of a list; `left` is None where the server does not know how many more there are."""
    api, kind = KINDS[resource]
    metadata: dict[str, Any] = {"resourceVersion": str(version)}
    if token:
        metadata["continue"] = token
        if left is not None:
            metadata["remainingItemCount"] = left
    bare = [{key: it[key] for key in it if key not in ("kind", "apiVersion")} for it in items]
    return {"kind": f"{kind}List", "apiVersion": api, "metadata": metadata, "items": bare}


def line(event: str, item: Mapping[str, Any]) -> bytes:
    """Return a line of a watch."""
    return json.dumps({"type": event, "object": item}, separators=(",", ":")).encode() + b"\n"


def too_large(version: int, current: int) -> RefusedError:
    """Return the refusal of a list at a version that is to come."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return RefusedError(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {version}, current: {current}",
        details={"causes": [cause], "retryAfterSeconds": 1},
    )


def no_version(text: str) -> RefusedError:
    """Return the refusal of a version that is none."""
    return RefusedError(
        500,
        "",
        f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax',
    )


def bookmark(resource: str, version: int) -> bytes:
    """Return the line that brings a version and nothing else."""
    api, kind = KINDS[resource]
    metadata = {"resourceVersion": str(version), "creationTimestamp": None}
    more = _MORE_ON_THE_KIND.get(resource, {})
    return line("BOOKMARK", {"kind": kind, "apiVersion": api, "metadata": metadata, **more})


def continue_token(version: int, last: str) -> str:
    """Return what the next page is asked with; version -1 is whatever is there then."""
    said = json.dumps({"v": "meta.k8s.io/v1", "rv": version, "start": f"{last}\0"})
    return urlsafe_b64encode(said.encode()).rstrip(b"=").decode()


def read_continue(token: str) -> tuple[int, str]:
    """Return version and last name of a token; RefusedError if it is none."""
    try:
        said = json.loads(urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        return int(said["rv"]), str(said["start"]).removesuffix("\0")
    except (ValueError, KeyError, TypeError):
        raise RefusedError(
            400, "BadRequest", "invalid continue token: continue key is not valid"
        ) from None
