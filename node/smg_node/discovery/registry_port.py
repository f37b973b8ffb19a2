"""Registry port: what discovery reads and writes of the cluster's workers, and of what nodes report on sources."""

from collections.abc import Generator, Mapping, Sequence
from typing import Protocol

from smg_node.config.worker_url import WorkerUrl
from smg_node.discovery.known import Dropped, Known
from smg_node.discovery.sighting import Endpoint, Sighting


class RegistryPort(Protocol):
    """Port to the workers of the cluster. Writing fails with SmgError for what cannot be registered."""

    @property
    def held(self) -> bool:
        """Whether the cluster's state is here, so that it may be written to."""
        ...

    def catch_up(self) -> Generator[float, None, None]:
        """Read what changed in steps, so that `known` has little left to do; 0.0 between them."""
        ...

    def known(self, kind: str) -> Mapping[Endpoint, Known]:
        """Return what sources of a kind have registered, by endpoint, as it is now."""
        ...

    def dropped(self, kind: str) -> Mapping[Endpoint, Dropped]:
        """Return what other nodes found gone in the last minutes."""
        ...

    def room(self) -> int:
        """Return how many more workers there may be."""
        ...

    def calls_up(self, worker_id: str) -> bool:
        """Return whether some prober calls that worker up, or none has judged it yet."""
        ...

    def put(self, kind: str, name: str, sighting: Sighting, *, keep: bool = False) -> None:
        """Register what a source shows, or change it to that; `keep`: it stays when the source is in no settings."""
        ...

    def release(self, kind: str, endpoint: Endpoint) -> None:
        """Let other sources of that kind have an endpoint; the worker stays until it is dropped."""
        ...

    def inherit(self, kind: str, name: str, endpoint: Endpoint) -> None:
        """Let a source remember what an operator removed, in place of another one of that kind."""
        ...

    def drop(self, kind: str, endpoint: Endpoint) -> None:
        """Say that sources of that kind do not show the endpoint any more."""
        ...

    def list_file(self, urls: Sequence[WorkerUrl]) -> Mapping[Endpoint, str]:
        """Say that this node's file lists exactly these; return what is not registered, and why."""
        ...


class Report(Protocol):
    """What a node says of a source; times are ages as of now."""

    @property
    def standing(self) -> str:
        """One of waiting, starting, ok, recovering, failing, or aside: it takes no new work."""
        ...

    @property
    def since_ms(self) -> int:
        """For how long it has stood so."""
        ...


class ReportsPort(Protocol):
    """Port to what the nodes report on sources; who is not heard of for 15 s reports nothing."""

    def publish(self, kind: str, name: str, fields: Mapping[str, object]) -> None:
        """Let all nodes know, for 15 s."""
        ...

    def withdraw(self, kind: str, name: str) -> None:
        """Report nothing of a source any more."""
        ...

    def of(self, kind: str, name: str) -> Mapping[str, Report]:
        """Return the reports of the living nodes, this one's too, by node."""
        ...

    def contested(self, kind: str, name: str) -> bool:
        """Return whether another source of that kind shows something that it may not have now."""
        ...

    def ranked(self, kind: str, name: str, nodes: Sequence[str]) -> Sequence[str]:
        """Return these nodes in the order in which they see to a source: the same on every node."""
        ...
