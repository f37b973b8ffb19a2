"""Worker roles: role and pairing of a worker: whole requests, prefill or decode, by operator or
engine. Pure.

What an engine says of itself counts where its operator says nothing; where the operator contradicts
the engine, the worker is not used. How an HTTP worker shares requests most of them cannot be
asked: of those its operator says so, with the label `kv_connector`.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from smg_node.config.worker_url import (
    CONNECTOR_LABEL,
    ENGINE_ID_LABEL,
    PAIRING_LABELS,
    WorkerUrl,
)
from smg_node.engines.disaggregation import BOOTSTRAP_PORT, Encoding, Pairing, Role, Style
from smg_node.engines.engine import Contract, ModelCard

ROLES: Final[Mapping[str, Role]] = {
    "regular": "regular",
    "prefill": "prefill",
    "decode": "decode",
    "encode": "encode",
}
STYLES: Final[Mapping[str, Style]] = {
    "sglang": "room",
    "nixl": "nixl",
    "mooncake": "minted",
    "store": "store",
}
"""What an operator may call the way in which HTTP workers hand requests over."""
_ENCODINGS: Final[Mapping[Contract, Encoding]] = {
    Contract.TOKENSPEED: "room",
    Contract.VLLM: "cache",
}


def role_of(url: WorkerUrl, card: ModelCard | None) -> Role:
    """Return the role of a worker: the operator's, else the engine's own."""
    said = ROLES[url.role]
    return card.role if said == "regular" and card is not None else said


def pairing_of(url: WorkerUrl, card: ModelCard | None) -> Pairing | None:
    """Return how a worker shares requests: as its engine says, with the operator's labels laid over it."""
    if card is None:
        return None
    over_http = card.contract is Contract.OPENAI
    told = _over_http(url, card.pairing) if over_http else card.pairing
    if told is None or not any(label in url.labels for label in PAIRING_LABELS):
        return told
    port = url.bootstrap_port
    return replace(
        told,
        group=told.group if over_http else url.labels.get(CONNECTOR_LABEL, told.group),
        bootstrap_port=told.bootstrap_port if port is None else port,
        engine_id=url.labels.get(ENGINE_ID_LABEL, told.engine_id),
    )


def encoding_of(url: WorkerUrl, card: ModelCard | None) -> Encoding | None:
    """Return how a worker that encodes pictures for others hands them over; None for any other worker.

    vLLM's engines do not say what they were started as: of those it is their operator who does.
    """
    if card is None or role_of(url, card) != "encode":
        return None
    return _ENCODINGS.get(card.contract)


def bootstrap_address_of(url: WorkerUrl, pairing: Pairing | None) -> tuple[str, int]:
    """Return host and port at which a worker that works prompts off meets its partners."""
    port = None if pairing is None else pairing.bootstrap_port
    return url.bootstrap_host, BOOTSTRAP_PORT if port is None else port


def misfit(url: WorkerUrl, card: ModelCard) -> str:
    """Return why a worker cannot have the role it is given, in an operator's terms; "" if it
    can.
    """
    said, role = ROLES[url.role], role_of(url, card)
    if "regular" not in (said, card.role) and said != card.role:
        return f"it was started for {card.role}, and is registered as {said}"
    if role == "encode":
        return _no_encoder(url, card)
    pairing = pairing_of(url, card)
    if (
        role == "prefill"
        and pairing is not None
        and pairing.style == "minted"
        and not pairing.engine_id
    ):
        return f"its partners must know what to call it: its label {ENGINE_ID_LABEL} is missing"
    if role == "regular" or pairing is not None:
        return ""
    if card.contract is Contract.OPENAI:
        return f"it does not say how it is paired: its label {CONNECTOR_LABEL} must be {_known()}"
    if card.role == role:
        return f"it was started for {role}, and does not say how it hands requests over"
    return f"it is registered for {role}, and was not started to share requests with another engine"


def _no_encoder(url: WorkerUrl, card: ModelCard) -> str:
    """Return why a worker cannot encode pictures for others; "" if it can."""
    match encoding_of(url, card):
        case None:
            return f"engines that speak {card.contract.value} cannot encode pictures for others from here"
        case "room" if card.role != "encode":
            return "it is registered for encode, and was not started to encode pictures for others"
        case _ if card.media is None or "tensors" not in card.media.ways:
            return "it is registered for encode, and takes no pictures"
        case _:
            return ""


def _over_http(url: WorkerUrl, told: Pairing | None) -> Pairing | None:
    """Return how an HTTP worker shares requests: as its label says, else as it does itself.

    All that have one style for a label can be paired. Any other label is a group of those that can be asked.
    """
    said = url.labels.get(CONNECTOR_LABEL)
    if said is None:
        return told
    style = STYLES.get(said.lower())
    if style is None:
        return None if told is None else replace(told, group=said)
    if told is not None and told.style == style:
        return replace(told, group="")
    return Pairing(style)


def _known() -> str:
    *most, last = STYLES
    return f"{', '.join(most)} or {last}"
