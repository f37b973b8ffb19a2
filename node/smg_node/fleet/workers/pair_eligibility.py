"""Pair eligibility: the workers that can share a request as prefill and decode engine, and so are
of use. Pure.

An engine that only works prompts off is of no use without one that draws the answer, and the other way round.
Two can be partners if they serve the same model and are of one group: they speak one contract, hand requests over
in the same way (`Pairing.style`), and share what they must share for that (`Pairing.group`).
"""

from collections.abc import Sequence
from typing import TypeAlias

from smg_node.fleet.workers.worker import Worker

Group: TypeAlias = tuple[str, str, str]
"""Contract, style, and what else both halves must share."""


def group_of(worker: Worker) -> Group | None:
    """Return the properties that the partners of a worker must share with it; None for one that can
    have none.
    """
    card, pairing = worker.card, worker.pairing
    if card is None or pairing is None:
        return None
    return card.contract.value, pairing.style, pairing.group


def fit(prefill: Worker, decode: Worker) -> bool:
    """Return whether one may work a prompt off for the other, by what they are; both may be
    down.
    """
    known = _known(prefill)
    return (
        (prefill.role, decode.role) == ("prefill", "decode")
        and known is not None
        and known == _known(decode)
    )


def useful(workers: Sequence[Worker]) -> list[Worker]:
    """Return those that may be given work now and can do it, alone or with one of the others, in their order.

    One that stands for other workers does nothing itself, and one that encodes pictures does so for others only.
    """
    ready = [worker for worker in workers if worker.routable and not worker.own_model]
    prefill, decode = (
        dict.fromkeys(_known(worker) for worker in ready if worker.role == role)
        for role in ("prefill", "decode")
    )
    paired = {known for known in prefill if known is not None and known in decode}
    able = {
        worker.id: (id(worker.serves), worker.card and worker.card.contract)
        for worker in ready
        if worker.role == "regular" or (worker.role != "encode" and _known(worker) in paired)
    }
    helped = set(able.values())
    return [
        worker
        for worker in ready
        if worker.id in able
        or (
            worker.encoding is not None
            and (id(worker.serves), worker.card and worker.card.contract) in helped
        )
    ]


def _known(worker: Worker) -> tuple[int, Group] | None:
    """Return the model a worker serves, and what it shares with partners; None where it can have
    none.
    """
    group = group_of(worker)
    return None if group is None or worker.serves is None else (id(worker.serves), group)
