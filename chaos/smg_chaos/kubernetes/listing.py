"""Lists: a page of the objects of one resource, namespace and selector, at one version."""

from collections.abc import Mapping
from typing import Any

from smg_chaos.kubernetes.answers import (
    RefusedError,
    continue_token,
    expired_continue,
    no_version,
    page,
    read_continue,
    too_large,
)
from smg_chaos.kubernetes.selectors import Requirement, matches, parse_selector
from smg_chaos.kubernetes.versions import CompactedError, Versions


def selector_of(query: Mapping[str, str]) -> tuple[Requirement, ...]:
    """Return the conditions that a request has; RefusedError in the server's way if its selector is none."""
    text = query.get("labelSelector", "")
    try:
        return parse_selector(text)
    except ValueError as error:
        raise RefusedError(400, "BadRequest", f"unable to parse requirement: {error}") from error


def version_of(query: Mapping[str, str]) -> int:
    """Return the version that a request names, 0 where it names none; RefusedError if it is no number."""
    text = query.get("resourceVersion", "")
    if not (text.isascii() and text.isdigit()) and text:
        raise no_version(text)
    return int(text or "0")


def labels_of(item: Mapping[str, Any]) -> Mapping[str, str]:
    """Return an object's labels."""
    labels: Mapping[str, str] = item["metadata"].get("labels") or {}
    return labels


def list_page(
    versions: Versions, resource: str, namespace: str, query: Mapping[str, str], *, page_max: int
) -> dict[str, Any]:
    """Return the page that a request asks for; RefusedError for one that cannot be had. No namespace is all of them."""
    wanted = selector_of(query)
    limit = min(int(query.get("limit", "0") or 0) or page_max, page_max)
    version, last = versions.version, ""
    if token := query.get("continue", ""):
        version, last = read_continue(token)
        version = versions.version if version < 0 else version
    elif (wished := version_of(query)) > version:
        raise too_large(wished, version)
    try:
        state = versions.state_at(version)
    except CompactedError:
        raise expired_continue(continue_token(-1, last)) from None
    except ValueError:
        raise too_large(version, versions.version) from None
    found = [
        (f"{key[1]}/{key[2]}", item)
        for key, item in sorted(state.items())
        if key[0] == resource and namespace in ("", key[1])
    ]
    rest = [(name, it) for name, it in found if name > last and matches(wanted, labels_of(it))]
    items = [item for _, item in rest[:limit]]
    more = continue_token(version, rest[limit - 1][0]) if len(rest) > limit else ""
    return page(resource, items, version, more, None if wanted else max(len(rest) - limit, 0))
