"""What the HTTP surface asks of the node behind it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from smg_node.core.request import Prompt


@dataclass(frozen=True, slots=True)
class ModelView:
    """One served model, as `/v1/models` shows it. `created_s` is when this node first saw it."""

    id: str
    created_s: int
    owned_by: str
    aliases: tuple[str, ...]
    workers: int
    workers_ready: int
    context: int | None


@dataclass(frozen=True, slots=True)
class WorkerView:
    """One worker, as `/workers` shows it; no secrets. `status` is pending, ready, not_ready, failed or draining."""

    id: str
    url: str
    model: str
    contract: str
    role: str
    status: str
    reason: str
    inflight: int
    labels: Mapping[str, str]
    details: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Tokenized:
    """The ids of a prompt and how many characters its text had."""

    ids: Sequence[int]
    characters: int


@dataclass(frozen=True, slots=True)
class Health:
    """What the probes report. `reasons` say why the node is not ready, empty when it is."""

    live: bool
    ready: bool
    draining: bool
    workers_ready: int
    workers_total: int
    reasons: tuple[str, ...]


class Catalog(Protocol):
    """Which models there are."""

    def models(self) -> Sequence[ModelView]:
        """Return every served model, sorted by id."""
        ...

    def model(self, name: str) -> ModelView:
        """Return the model of that id or alias; NOT_FOUND `model_not_found` otherwise."""
        ...


class TokenService(Protocol):
    """Text to ids and back, exactly as a generation would."""

    async def tokenize(self, model: str, prompt: Prompt) -> Tokenized:
        """Render and encode one prompt."""
        ...

    async def detokenize(self, model: str, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        """Return the text of `ids`; INVALID_REQUEST for an id outside the vocabulary."""
        ...


class Workers(Protocol):
    """The fleet, for its operator. All of these are local to this node."""

    def workers(self) -> Sequence[WorkerView]:
        """Return every worker, sorted by id."""
        ...

    def worker(self, worker_id: str) -> WorkerView:
        """Return one worker; NOT_FOUND `worker_not_found` otherwise."""
        ...

    def add(
        self, url: str, *, model: str | None, role: str | None, labels: Mapping[str, str]
    ) -> WorkerView:
        """Register a worker; idempotent by URL. INVALID_REQUEST for a URL that cannot be one."""
        ...

    def drain(self, worker_id: str) -> WorkerView:
        """Send it no new work."""
        ...

    def undrain(self, worker_id: str) -> WorkerView:
        """Send it work again."""
        ...

    async def remove(self, worker_id: str, *, force: bool) -> None:
        """Forget a worker; unless `force`, only when its requests have ended (at most 180 s)."""
        ...

    async def probe(self, worker_id: str) -> WorkerView:
        """Look at a worker now, at most 3 s."""
        ...

    async def loads(self) -> Sequence[Mapping[str, Any]]:
        """Return what each ready worker says of its load, one row a rank, failures as rows with `error`."""
        ...


class HealthReport(Protocol):
    """Whether this node is well."""

    def health(self) -> Health:
        """Return the present state."""
        ...
