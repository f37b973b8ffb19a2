"""Relay eligibility: which workers can take a relayed request, and the error where none can. Pure.

A pair that meets in a room gives one answer to one prompt. A pair that takes turns can be asked for anything: what
cannot be handed over, its second half does alone.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from smg_node.core.errors import SmgError
from smg_node.engines.http.http_engine import HttpEngine
from smg_node.engines.http.status_mapping import not_implemented
from smg_node.engines.http.vendor_side import VendorSide
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.relay.relay_call import may_have
from smg_node.pipeline.relay.relay_request import Relayable

if TYPE_CHECKING:
    pass

TRANSLATED: Final = frozenset({"chat", "messages", "generate_content"})
"""APIs whose clients can be answered by a vendor that speaks another one."""


def can_take(worker: Worker, asked: Relayable) -> bool:
    """Whether a worker may be given the request, or its half of it."""
    side = vendor_of(worker)
    if side is not None:
        api = asked.api
        return api.name in side.dialects or (api.generates and api.name in TRANSLATED)
    if worker.own_model:
        return True
    if asked.api.native:
        return False
    return may_have(worker, asked.api) and (
        worker.role == "regular"
        or (asked.api.generates and (asked.shareable or not _meets(worker)))
    )


def vendor_of(worker: Worker) -> VendorSide | None:
    """Return the vendor side of a worker that is a model at a vendor; None for any other, or one that is not open."""
    engine = worker.engine
    return engine.vendor if isinstance(engine, HttpEngine) else None


def for_pairs(asked: Relayable, serving: Sequence[Worker]) -> bool:
    """Whether a pair may be given the request, of those that serve its model."""
    return asked.api.generates and (
        asked.shareable or any(worker.role == "decode" and not _meets(worker) for worker in serving)
    )


def check_somebody_can(asked: Relayable, serving: Sequence[Worker]) -> None:
    """Raise a 501 unless there are workers, whatever their state, that can take the request."""
    if any(can_take(worker, asked) for worker in serving):
        return
    if not asked.api.generates or not any(may_have(worker, asked.api) for worker in serving):
        raise nobody(asked)
    raise not_implemented(
        f"the workers of {asked.model!r} work in pairs, which give one answer to one prompt and do not tell of "
        "the prompt's tokens: ask for one at a time"
    )


def nobody(asked: Relayable) -> SmgError:
    """Return the error for an API that no worker of the model has."""
    return not_implemented(f"no worker of {asked.model!r} serves {asked.api.paths[0]}")


def _meets(worker: Worker) -> bool:
    """Whether the worker is half of a pair that meets in a room."""
    pairing = worker.pairing
    return pairing is not None and pairing.style == "room"
