"""Objects of the Kubernetes API, with the few fields that are read of them, and their decoders.

Everything else in them is skipped without being kept: of the two to ten kilobytes of a pod some two hundred bytes stay.
"""

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

T = TypeVar("T")

_SHOWN_MAX_CHARACTERS: Final = 300


class Metadata(Struct, rename="camel", frozen=True):
    """What every object says of itself."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    resource_version: str = ""


class ContainerPort(Struct, rename="camel", frozen=True):
    """A port that a container names."""

    container_port: int = 0
    name: str = ""
    protocol: str = "TCP"


class Container(Struct, frozen=True):
    """A container of a pod."""

    ports: list[ContainerPort] | None = None


class PodSpec(Struct, rename="camel", frozen=True):
    """What is wanted of a pod."""

    node_name: str = ""
    containers: list[Container] | None = None


class Condition(Struct, frozen=True):
    """A condition of a pod, such as `Ready`."""

    type: str = ""
    status: str = ""


class PodAddress(Struct, frozen=True):
    """One of a pod's addresses."""

    ip: str = ""


class PodStatus(Struct, rename={"pod_ip": "podIP", "pod_ips": "podIPs"}, frozen=True):
    """What became of a pod."""

    phase: str = ""
    pod_ip: str = ""
    pod_ips: list[PodAddress] | None = None
    conditions: list[Condition] | None = None


class Pod(Struct, frozen=True):
    """A pod."""

    metadata: Metadata
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class SlicePort(Struct, frozen=True):
    """A port of the endpoints of a slice."""

    name: str | None = None
    port: int | None = None
    protocol: str | None = None


class EndpointConditions(Struct, frozen=True):
    """Conditions of an endpoint; what is not said is None."""

    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class Target(Struct, frozen=True):
    """The object that an endpoint stands for."""

    kind: str = ""
    name: str = ""
    namespace: str = ""
    uid: str = ""


class Endpoint(Struct, rename="camel", frozen=True):
    """An endpoint of a service."""

    addresses: list[str] | None = None
    conditions: EndpointConditions | None = None
    target_ref: Target | None = None
    node_name: str | None = None
    zone: str | None = None


class Slice(Struct, rename="camel", frozen=True):
    """A slice of the endpoints of a service."""

    metadata: Metadata
    address_type: str = ""
    endpoints: list[Endpoint] | None = None
    ports: list[SlicePort] | None = None


class ListMetadata(Struct, rename={"resource_version": "resourceVersion", "more": "continue"}):
    """What a page of a list says of itself; `more` is what the next page is asked with, empty for none."""

    resource_version: str = ""
    more: str = ""


class Page(Struct):
    """A page of a list, its items unread."""

    metadata: ListMetadata
    items: list[msgspec.Raw] | msgspec.UnsetType | None = msgspec.UNSET
    """Nothing for an empty list, as some servers write it; what has no such key is no list."""


class StatusDetails(Struct, rename="camel"):
    """Details of a refusal."""

    retry_after_seconds: int = 0


class Status(Struct):
    """What the API server says instead of what was asked."""

    kind: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails | None = None


class Event(Struct):
    """A line of a watch, its object unread."""

    type: str
    object: msgspec.Raw


class Bookmarked(Struct):
    """The object of a bookmark: nothing but a version."""

    metadata: Metadata


class NotUnderstoodError(Exception):
    """An answer that is none of the Kubernetes API."""


_PAGE: Final = msgspec.json.Decoder(Page)
_EVENT: Final = msgspec.json.Decoder(Event)
_STATUS: Final = msgspec.json.Decoder(Status)
_BOOKMARKED: Final = msgspec.json.Decoder(Bookmarked)
_POD: Final = msgspec.json.Decoder(Pod)
_SLICE: Final = msgspec.json.Decoder(Slice)


def read_page(text: bytes) -> Page:
    """Return a page of a list; NotUnderstoodError if it is none."""
    page = _read(_PAGE.decode, text, "a list")
    if page.items is msgspec.UNSET:
        raise NotUnderstoodError("a list without items")
    if not page.metadata.resource_version:
        raise NotUnderstoodError("a list without a resourceVersion")
    return page


def read_event(line: bytes) -> Event:
    """Return a line of a watch; NotUnderstoodError if it is none."""
    return _read(_EVENT.decode, line, "a line of a watch")


def read_bookmark(text: bytes | msgspec.Raw) -> str:
    """Return the version that a bookmark brings; NotUnderstoodError if there is none."""
    version = _read(_BOOKMARKED.decode, text, "a bookmark").metadata.resource_version
    if not version:
        raise NotUnderstoodError("a bookmark without a resourceVersion")
    return version


def read_pod(text: bytes | msgspec.Raw) -> Pod:
    """Return a pod; NotUnderstoodError if it is none."""
    pod = _read(_POD.decode, text, "a pod")
    if not (pod.metadata.name and pod.metadata.uid):
        raise NotUnderstoodError("a pod without a name or a uid")
    return pod


def read_slice(text: bytes | msgspec.Raw) -> Slice:
    """Return a slice of endpoints; NotUnderstoodError if it is none."""
    found = _read(_SLICE.decode, text, "an endpoint slice")
    if not found.metadata.name:
        raise NotUnderstoodError("an endpoint slice without a name")
    return found


def read_status(text: bytes | msgspec.Raw) -> Status:
    """Return what a refusal says; one that says nothing that is understood is empty."""
    try:
        return _read(_STATUS.decode, text, "a status")
    except NotUnderstoodError:
        return Status()


def shown(text: str) -> str:
    """Return text of the API server as it may stand in a log line: short and printable."""
    clipped = text[:_SHOWN_MAX_CHARACTERS]
    return "".join(sign if sign.isprintable() else " " for sign in clipped).strip()


def _read(decode: Callable[[bytes], T], text: bytes | msgspec.Raw, what: str) -> T:
    try:
        return decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise NotUnderstoodError(f"what came is not {what}: {shown(str(error))}") from None
