"""Shared port: the part of replicated state that the fleet's side uses; `smg_mesh.shared.Shared`
fits.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from smg_node.routing.policy import Bindings

if TYPE_CHECKING:
    from smg_mesh.shared import Listed, WorkerRecord, WorkerSpec


class WorkersPort(Protocol):
    """Port to the workers of the cluster."""

    def get(self, worker_id: str) -> "WorkerRecord | None":
        """Return one, None if there is none."""
        ...

    def records(self) -> "Sequence[WorkerRecord]":
        """Return all, sorted by id."""
        ...

    def watch(self, heard: Callable[[Sequence[str]], None]) -> None:
        """Report the ids of workers that came, changed or went."""
        ...

    def add(self, worker_id: str, source: Literal["api"], spec: "WorkerSpec") -> "WorkerRecord":
        """Register a worker."""
        ...

    def list_own(
        self,
        source: Literal["static", "file"],
        specs: "Mapping[str, WorkerSpec]",
        *,
        same_key: Callable[[bytes, bytes], bool],
    ) -> "Listed":
        """Publish exactly these as the workers that this node lists itself."""
        ...

    def change(self, worker_id: str, **fields: object) -> "WorkerRecord":
        """Change fields of a spec; LookupError for an unknown worker."""
        ...

    def drain(self, worker_id: str, *, on: bool) -> "WorkerRecord":
        """Set whether it gets no new work; LookupError for an unknown one."""
        ...

    def remove(self, worker_id: str) -> "WorkerRecord":
        """Remove it everywhere; LookupError for an unknown one."""
        ...

    def __len__(self) -> int:
        """Return the number of workers."""
        ...


class VerdictPort(Protocol):
    """One node's verdict on a worker."""

    @property
    def node(self) -> str:
        """The node that gave it."""
        ...

    @property
    def up(self) -> bool:
        """Whether the worker is up."""
        ...

    @property
    def reason(self) -> str:
        """The reason."""
        ...

    @property
    def age_ms(self) -> int:
        """Age of the verdict."""
        ...


class VerdictsPort(Protocol):
    """Port to the nodes' verdicts on the workers they probe."""

    def publish(self, worker_id: str, *, up: bool, reason: str, ttl_ms: int) -> object:
        """Publish this node's verdict; it holds for `ttl_ms`."""
        ...

    def forget(self, worker_id: str) -> object:
        """Withdraw this node's verdict."""
        ...

    def of(self, worker_id: str) -> Sequence[VerdictPort]:
        """Return the verdicts that are fresh."""
        ...

    def watch(self, heard: Callable[[Sequence[str]], None]) -> None:
        """Report the ids of workers whose verdicts are new or gone."""
        ...


class LoadPort(Protocol):
    """Port to how much the nodes have open on the workers."""

    def publish(self, loads: Mapping[str, tuple[int, int]]) -> object:
        """Publish how many requests and prompt tokens this node has open, by worker."""
        ...

    def other(self, worker_id: str) -> tuple[int, int]:
        """Return the sum of what all other nodes have open there."""
        ...

    def watch(self, heard: Callable[[Sequence[str]], None]) -> None:
        """Report the ids of workers on which others have more or less open than before."""
        ...


class RowPort(Protocol):
    """Binding of a routing key to a worker; times are wall-clock milliseconds."""

    @property
    def worker(self) -> str:
        """The worker."""
        ...

    @property
    def why(self) -> str:
        """Why the key is bound to it."""
        ...

    @property
    def node(self) -> str:
        """The node that wrote it last."""
        ...

    @property
    def time_ms(self) -> int:
        """Time of that write."""
        ...

    @property
    def expires_ms(self) -> int:
        """When it expires unless it is used."""
        ...


class StickyPort(Bindings, Protocol):
    """Port to the bindings of routing keys."""

    def row(self, key: str) -> RowPort | None:
        """Return all fields of a binding."""
        ...


class SharedPort(Protocol):
    """One node's part of the state that all nodes share."""

    @property
    def name(self) -> str:
        """This node's name."""
        ...

    @property
    def workers(self) -> WorkersPort:
        """The workers of the cluster."""
        ...

    @property
    def verdicts(self) -> VerdictsPort:
        """The nodes' verdicts on the workers."""
        ...

    @property
    def load(self) -> LoadPort:
        """What the nodes have open on the workers."""
        ...

    @property
    def sticky(self) -> StickyPort:
        """The bindings of routing keys."""
        ...

    @property
    def held(self) -> bool:
        """Whether this node holds the cluster's state."""
        ...

    def living(self) -> Sequence[str]:
        """Return the names of the living members, this node's included."""
        ...

    def watch_members(self, heard: Callable[[Sequence[str]], None]) -> None:
        """Report the living members whenever they change."""
        ...

    def watch_forgotten(self, heard: Callable[[], None]) -> None:
        """Report when this node had to forget its state, its own listings included."""
        ...

    def watch_held(self, heard: Callable[[], None]) -> None:
        """Report once when the cluster's state is here."""
        ...

    def seal(self, secret: str) -> bytes:
        """Return a secret, encrypted so that only nodes of this cluster can read it."""
        ...

    def open_secret(self, sealed: bytes) -> str | None:
        """Return the secret, None if this node cannot decrypt it."""
        ...
