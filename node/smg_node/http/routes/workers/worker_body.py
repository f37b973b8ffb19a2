"""Worker body: reads descriptions of workers, in this API's fields and in those of other gateways.

`model_id` or one entry of `models` is the model, `worker_type` the role, `runtime` and
`runtime_type` the contract, `bootstrap_port` where the worker meets its partners, which is a label
here. Other fields of such clients (health checks of one worker, connection pools, ranks) have no
effect here and are named in `x-smg-ignored-params`.
"""

from collections.abc import Mapping
from typing import Any, Final

from smg_node.config.worker_url import BOOTSTRAP_PORT_LABEL
from smg_node.core.errors import invalid, unsupported
from smg_node.http.message.field_reader import number_field, text_field
from smg_node.http.ports.node import WorkerChange, WorkerRequest

URL_MAX: Final = 2048
NAME_MAX: Final = 256
LABELS_MAX: Final = 64
PRIORITY_DEFAULT: Final = 50
PRIORITY_MAX: Final = 1_000_000
COST_DEFAULT: Final = 1.0
COST_MAX: Final = 1_000_000.0
KEY_MAX: Final = 4096
PORT_MAX: Final = 65_535
DRAINING: Final = "draining"
READY: Final = "ready"

_SPEC: Final = (
    "model",
    "model_id",
    "models",
    "role",
    "worker_type",
    "contract",
    "runtime",
    "runtime_type",
    "labels",
    "priority",
    "cost",
    "api_key",
    "bootstrap_port",
)
KNOWN: Final = frozenset({"url", *_SPEC})
CHANGEABLE: Final = ("status", *_SPEC)
_RUNTIMES: Final[Mapping[str, str]] = {"tensorrt-llm": "trtllm"}
_UNSPECIFIED: Final = "unspecified"


def read_worker_request(body: Mapping[str, Any]) -> WorkerRequest:
    """Return the worker that a body describes; INVALID_REQUEST with the path of the error."""
    url = text_field(body, "url", URL_MAX)
    if url is None:
        raise invalid("a worker needs a url", "url", "missing_required_parameter")
    change = read_change(body, draining=None)
    return WorkerRequest(
        url=url,
        model=change.model or None,
        role=change.role,
        contract=change.contract,
        labels=_with_port(change),
        priority=change.priority,
        cost=change.cost,
        api_key=change.api_key or None,
    )


def read_change(body: Mapping[str, Any], *, draining: bool | None) -> WorkerChange:
    """Return the changes of a worker in a body; INVALID_REQUEST with the path of the error."""
    priority = number_field(body, "priority", low=0, high=PRIORITY_MAX, whole=True)
    port = number_field(body, BOOTSTRAP_PORT_LABEL, low=1, high=PORT_MAX, whole=True)
    return WorkerChange(
        model=_model(body),
        role=_one_of(body, "role", "worker_type"),
        contract=_contract(body),
        labels=_labels(body),
        priority=None if priority is None else int(priority),
        cost=number_field(body, "cost", low=0, high=COST_MAX),
        api_key=_key(body),
        draining=draining,
        bootstrap_port=None if port is None else int(port),
    )


def read_replacement(body: Mapping[str, Any]) -> WorkerChange:
    """Return the change that makes a worker equal to a body, with defaults for absent fields."""
    change = read_change(body, draining=None)
    return WorkerChange(
        model=change.model or "",
        role=change.role,
        contract=change.contract,
        labels=_with_port(change),
        priority=PRIORITY_DEFAULT if change.priority is None else change.priority,
        cost=COST_DEFAULT if change.cost is None else change.cost,
        api_key=change.api_key or "",
    )


def read_status(body: Mapping[str, Any]) -> bool | None:
    """Return whether a body asks to drain the worker; None if it does not say."""
    status = text_field(body, "status", NAME_MAX)
    if status not in (None, DRAINING, READY):
        raise invalid("status must be 'draining' or 'ready'", "status")
    return None if status is None else status == DRAINING


def _model(body: Mapping[str, Any]) -> str | None:
    models = body.get("models")
    if not models:
        return _one_of(body, "model", "model_id", empty=True)
    first = models[0] if isinstance(models, list) and len(models) == 1 else None
    name = first.get("id") if isinstance(first, dict) else first
    if not isinstance(name, str) or not 0 < len(name) <= NAME_MAX:
        raise unsupported("a worker serves one model: models must be a list of one id", "models")
    return name


def _contract(body: Mapping[str, Any]) -> str | None:
    said = _one_of(body, "contract", "runtime", "runtime_type")
    if said is None or said == _UNSPECIFIED:
        return None
    return _RUNTIMES.get(said, said)


def _one_of(body: Mapping[str, Any], *names: str, empty: bool = False) -> str | None:
    """Return the first of several names of one field that is there."""
    said = [text_field(body, name, NAME_MAX, empty=empty) for name in names]
    return next((text for text in said if text is not None), None)


def _labels(body: Mapping[str, Any]) -> Mapping[str, str] | None:
    labels = body.get("labels")
    if labels is None:
        return None
    if not isinstance(labels, dict) or len(labels) > LABELS_MAX:
        raise invalid(f"labels must be an object of at most {LABELS_MAX} strings", "labels")
    for name, value in labels.items():
        if not isinstance(value, str) or len(value) > NAME_MAX or not 0 < len(name) <= NAME_MAX:
            raise invalid(f"labels.{name[:64]} must be a string", f"labels.{name[:64]}")
    return labels


def _with_port(change: WorkerChange) -> Mapping[str, str]:
    """Return all labels of a worker that is described as a whole."""
    labels = dict(change.labels or {})
    if change.bootstrap_port is not None:
        labels[BOOTSTRAP_PORT_LABEL] = str(change.bootstrap_port)
    return labels


def _key(body: Mapping[str, Any]) -> str | None:
    key = text_field(body, "api_key", KEY_MAX, empty=True)
    if key is not None and not (key.isascii() and key.isprintable()):
        # It becomes a header of a request to the engine.
        raise invalid("api_key must be printable ASCII", "api_key")
    return key
