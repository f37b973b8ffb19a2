"""Server metadata: models, version, settings and load of an HTTP server, normalised. Pure: any
bytes give a value or nothing.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from smg_node.engines.contracts.engine_metadata import whole
from smg_node.engines.contracts.load_reports import REQUESTS_MAX, share
from smg_node.engines.load import Load

_NAME_MAX_CHARACTERS: Final = 256
_MODELS_MAX: Final = 1_000
_RANKS_MAX: Final = 256
_decode: Final = msgspec.json.Decoder().decode
_SAMPLE: Final = re.compile(
    rb"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{[^\n]*\})? ([0-9.eE+-]+|NaN)", re.MULTILINE
)
_RUNNING: Final = (b"vllm:num_requests_running", b"sglang:num_running_reqs")
_WAITING: Final = (b"vllm:num_requests_waiting", b"sglang:num_queue_reqs")
_USAGE: Final = (
    b"vllm:kv_cache_usage_perc",
    b"vllm:gpu_cache_usage_perc",
    b"sglang:token_usage",
)


@dataclass(frozen=True, slots=True)
class ListedModel:
    """One entry of `/v1/models`."""

    name: str
    owned_by: str = ""
    path: str = ""
    context: int | None = None
    adapter: bool = False
    """Whether it is another one with an adapter on top."""


def decoded(body: bytes) -> Any:
    """Return the value of a JSON body, None for anything that is no JSON."""
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def listed_models(body: bytes) -> Sequence[ListedModel]:
    """Return the models that `/v1/models` lists, at most 1,000 of them."""
    value = decoded(body)
    rows = value.get("data") if isinstance(value, dict) else None
    if not isinstance(rows, list):
        return ()
    found = (_listed(row) for row in rows[:_MODELS_MAX])
    return tuple(one for one in found if one is not None)


def _listed(row: Any) -> ListedModel | None:
    name = row.get("id") if isinstance(row, dict) else None
    if not isinstance(name, str) or not 0 < len(name) <= _NAME_MAX_CHARACTERS:
        return None
    return ListedModel(
        name,
        owned_by=_text(row.get("owned_by")),
        path=_text(row.get("root")),
        context=whole(row.get("max_model_len")),
        adapter=isinstance(row.get("parent"), str),
    )


def version_of(body: bytes) -> str:
    """Return the version that `/version` gives, "" if none."""
    value = decoded(body)
    return _text(value.get("version")) if isinstance(value, dict) else ""


def settings_of(body: bytes) -> Mapping[str, object]:
    """Return the settings that `/get_server_info` shows; empty if none."""
    value = decoded(body)
    return value if isinstance(value, dict) else {}


def load_rows(body: bytes) -> Sequence[Load]:
    """Return the load rows of `/get_load`, one a rank, less absurd ones; empty if it is something
    else.

    Its `num_reqs` counts those that wait as well.
    """
    value = decoded(body)
    rows = value if isinstance(value, list) else []
    found = (_load(row, at) for at, row in enumerate(rows[:_RANKS_MAX]))
    return tuple(one for one in found if one is not None)


def _load(row: Any, at: int) -> Load | None:
    if not isinstance(row, dict):
        return None
    requests, waiting = row.get("num_reqs"), row.get("num_waiting_reqs", 0)
    if not _is_count(requests) or not _is_count(waiting):
        return None
    said = row.get("dp_rank")
    return Load(
        rank=said if isinstance(said, int) and 0 <= said < _RANKS_MAX else at,
        running=max(0, requests - waiting),
        waiting=waiting,
        running_max=None,
        waiting_uncached_tokens=None,
        kv_usage=None,
        tokens_per_s=None,
        cache_hit_rate=None,
    )


def load_of_metrics(text: bytes) -> Load | None:
    """Return the load of vLLM or SGLang from a Prometheus page, all engines of the process
    together.
    """
    running, waiting, usage = None, 0.0, None
    for name, value in _SAMPLE.findall(text):
        if name in _RUNNING:
            running = (running or 0.0) + _number(value)
        elif name in _WAITING:
            waiting += _number(value)
        elif name in _USAGE:
            usage = max(usage or 0.0, _number(value))
    if running is None or not (0 <= running <= REQUESTS_MAX and 0 <= waiting <= REQUESTS_MAX):
        return None
    return Load(
        rank=0,
        running=int(running),
        waiting=int(waiting),
        running_max=None,
        waiting_uncached_tokens=None,
        kv_usage=None if usage is None else share(usage),
        tokens_per_s=None,
        cache_hit_rate=None,
    )


def _number(text: bytes) -> float:
    """Return a sample's value; for one that is no number, a value too large to be believed."""
    try:
        value = float(text)
    except ValueError:
        return float("inf")
    return value if value == value else float("inf")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= REQUESTS_MAX


def _text(value: object) -> str:
    return value[:_NAME_MAX_CHARACTERS] if isinstance(value, str) else ""
