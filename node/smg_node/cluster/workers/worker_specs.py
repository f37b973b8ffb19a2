"""Worker specs: worker URLs as shared state holds them, the ids an address may have, refused writes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from smg_node.config.worker_url import WorkerUrl, parse_worker_url
from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.core.ids import WorkerId
from smg_node.fleet.workers.worker_spec import worker_id_at

if TYPE_CHECKING:
    from smg_mesh.shared import WorkerSpec

_SCHEMES: Final = ("grpc", "http", "grpcs", "https")


def ids_at(url: WorkerUrl) -> tuple[WorkerId, ...]:
    """Return the ids that a worker at this address may have, under its own scheme first."""
    return _ids_of(url.identity)


@lru_cache(maxsize=4_096)
def _ids_of(identity: str) -> tuple[WorkerId, ...]:
    """Return the ids of an address under each scheme; those of one worker are asked for several times in a row."""
    scheme, _, address = identity.partition("://")
    schemes = (scheme, *(other for other in _SCHEMES if other != scheme))
    return tuple(worker_id_at(f"{one}://{address}") for one in schemes)


def spec_of(url: WorkerUrl, sealed_key: bytes = b"") -> "WorkerSpec":
    """Return the spec of a worker at this URL, with its sealed key."""
    from smg_mesh.shared import WorkerSpec

    return WorkerSpec(url=url.endpoint, sealed_key=sealed_key, **fields_of(url))


def url_of(spec: "WorkerSpec") -> WorkerUrl:
    """Return the URL of a worker with all that its spec says beside the address; INVALID_REQUEST for an address that is
    none here.
    """
    return replace(
        parse_worker_url(spec.url),
        role=spec.role,
        model=spec.model,
        contract=spec.contract,
        labels=MappingProxyType(dict(spec.labels)),
        priority=spec.priority,
        cost=spec.cost,
    )


def fields_of(url: WorkerUrl) -> dict[str, Any]:
    """Return what a URL says beside the address."""
    return {
        "contract": url.contract,
        "role": url.role,
        "model": url.model,
        "labels": dict(url.labels),
        "priority": url.priority,
        "cost": url.cost,
    }


@contextmanager
def refusals() -> Iterator[None]:
    """Translate the shared state's refusal of a write into the node's error."""
    from smg_mesh.shared import StateError

    try:
        yield
    except LookupError as error:
        raise SmgError(ErrorKind.NOT_FOUND, str(error), code="worker_not_found") from error
    except StateError as error:
        kind = ErrorKind.INVALID_REQUEST if error.reason == "too_large" else ErrorKind.OVERLOADED
        raise SmgError(kind, str(error), code=f"state_{error.reason}") from error
    except ValueError as error:
        raise invalid(str(error)) from error
