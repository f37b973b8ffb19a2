"""Loads of an engine: one moment's figures, throughput and hit rate, and their messages in each
contract.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, Final

from smg_chaos.engine.protocol.servicer_behaviours import Manners

_WINDOW_S: Final = 2.0  # over which real servicers measure throughput
_PROMPTS_MAX: Final = 64  # over which they measure the hit rate


@dataclass(frozen=True, slots=True)
class Load:
    """One moment's load. Tokens are block capacity, as engines count it."""

    running: int
    waiting: int
    running_max: int
    waiting_tokens: int
    used_tokens: int
    resident_tokens: int
    total_tokens: int
    tokens_per_s: float
    hit_rate: float
    silence_ms: int | None
    prefill_tokens: int
    age_ms: int = 0
    mode: str = "null"

    def moved(self, other: "Load") -> bool:
        """Return whether `other` differs enough to be reported."""
        if (self.running, self.waiting, self.waiting_tokens, self.running_max) != (
            other.running,
            other.waiting,
            other.waiting_tokens,
            other.running_max,
        ):
            return True
        if abs(self.used_tokens - other.used_tokens) > 0.005 * max(1, self.total_tokens):
            return True
        change = abs(self.tokens_per_s - other.tokens_per_s)
        return change > 50 or change > 0.05 * max(self.tokens_per_s, other.tokens_per_s)


class Meter:
    """Measures throughput over two seconds and the hit rate over the last prompts."""

    def __init__(self) -> None:
        self._made: deque[tuple[float, int]] = deque()
        self._sum = 0
        self._prompts: deque[tuple[int, int]] = deque(maxlen=_PROMPTS_MAX)
        self.last_output_s: float | None = None
        self.prompt_tokens = 0
        """Of all prompts since the start."""
        self.cached_tokens = 0

    def made(self, tokens: int, now_s: float) -> None:
        """Count tokens that were just made."""
        self._made.append((now_s, tokens))
        self._sum += tokens
        self.last_output_s = now_s
        self._trim(now_s)

    def _trim(self, now_s: float) -> None:
        made = self._made
        while made and now_s - made[0][0] > _WINDOW_S:
            self._sum -= made.popleft()[1]

    def prompt(self, tokens: int, cached: int) -> None:
        """Count a prompt whose first token was just made."""
        cached = min(cached, tokens)
        self._prompts.append((tokens, cached))
        self.prompt_tokens += tokens
        self.cached_tokens += cached

    def tokens_per_s(self, now_s: float) -> float:
        """Return the recent throughput."""
        self._trim(now_s)
        return self._sum / _WINDOW_S

    def hit_rate(self) -> float:
        """Return the share of recent prompt tokens that were cached."""
        total = sum(tokens for tokens, _ in self._prompts)
        return sum(cached for _, cached in self._prompts) / total if total else 0.0


def absurd(load: Load) -> Load:
    """Return an impossible load."""
    return replace(
        load,
        running=2**31 - 1,
        waiting=2**31 - 1,
        running_max=0,
        waiting_tokens=2**31 - 1,
        used_tokens=2**31 - 1,
        tokens_per_s=float("inf"),
        hit_rate=-3.0,
    )


def _usage(load: Load, tokens: int) -> float:
    return tokens / load.total_tokens if load.total_tokens else 0.0


def _figures(load: Load, manners: Manners) -> dict[str, Any]:
    """Return a SchedulerLoad's fields by the names all contracts share."""
    used = load.resident_tokens if manners.load_retained else load.used_tokens
    figures: dict[str, Any] = {
        "num_running_reqs": load.running,
        "num_waiting_reqs": load.waiting,
        "num_total_reqs": min(load.running + load.waiting, 2**31 - 1),
        "num_used_tokens": used,
        "max_total_num_tokens": load.total_tokens,
        "token_usage": _usage(load, used),
        "max_running_requests": load.running_max,
    }
    if manners.load_speeds:
        figures |= {
            "gen_throughput": load.tokens_per_s,
            "cache_hit_rate": load.hit_rate,
            "utilization": _usage(load, used),
        }
    if manners.load_queued:
        figures["num_waiting_uncached_tokens"] = load.waiting_tokens
    if manners.load_retained:
        figures["active_token_usage"] = _usage(load, load.used_tokens)
    return figures


def _sections(load: Load) -> dict[str, dict[str, Any]]:
    return {
        "memory": {"weight_gb": 0.005, "kv_cache_gb": 0.016, "token_capacity": load.total_tokens},
        "queues": {"waiting": load.waiting},
        "disaggregation": {"mode": load.mode},
    }


def loads_answer(
    messages: ModuleType,
    loads: Mapping[int, Load],
    manners: Manners,
    stamp: Mapping[str, str],
    include: Sequence[str],
) -> bytes:
    """Return a GetLoadsResponse for ranks by number; `stamp` holds the timestamp and the version."""
    figures = [_figures(load, manners) for load in loads.values()]
    entries = [
        messages.SchedulerLoad(dp_rank=number, **row)
        for number, row in zip(loads, figures, strict=True)
    ]
    if manners.load_sections and (not include or "all" in include):
        for entry, load in zip(entries, loads.values(), strict=True):
            _fill(entry, _sections(load))
    answer = messages.GetLoadsResponse(dp_rank_count=len(entries), loads=entries, **stamp)
    if hasattr(messages, "AggregateMetrics"):
        answer.aggregate.CopyFrom(
            messages.AggregateMetrics(
                total_running_reqs=_sum(figures, "num_running_reqs"),
                total_waiting_reqs=_sum(figures, "num_waiting_reqs"),
                total_reqs=_sum(figures, "num_total_reqs"),
                avg_token_usage=sum(row["token_usage"] for row in figures) / max(1, len(figures)),
            )
        )
    answer_bytes: bytes = answer.SerializeToString()
    return answer_bytes


def load_record(
    common: ModuleType, load: Load, manners: Manners, *, sample: int, load_only: bool
) -> Any:
    """Return an EngineLoad; only a stream's first record and `load_only` ones have all fields."""
    figures = _figures(load, manners)
    record = common.EngineLoad(
        running_requests=load.running,
        waiting_requests=load.waiting,
        token_usage=figures["token_usage"],
        gen_throughput=figures.get("gen_throughput", 0.0),
        max_running_requests=load.running_max,
        age_ms=load.age_ms,
        sample=sample,
        load_only=load_only,
    )
    if manners.load_queued:
        record.waiting_uncached_tokens = load.waiting_tokens
    if manners.load_retained:
        record.active_token_usage = figures["active_token_usage"]
    if manners.load_silence:
        if load.silence_ms is not None:
            record.engine_silence_ms = load.silence_ms
        record.engine_reports_steps = True
        record.prefill_pending_tokens = load.prefill_tokens
    if load_only or sample == 1:
        record.cache_hit_rate = load.hit_rate if manners.load_speeds else 0.0
        record.num_used_tokens = figures["num_used_tokens"]
        record.max_total_num_tokens = load.total_tokens
        if manners.load_sections:
            _fill(record, _sections(load))
    return record


def _fill(message: Any, sections: Mapping[str, Mapping[str, Any]]) -> None:
    for name, values in sections.items():
        section = getattr(message, name)
        section.SetInParent()
        for key, value in values.items():
            setattr(section, key, value)


def _sum(figures: Sequence[Mapping[str, Any]], name: str) -> int:
    total: int = sum(row[name] for row in figures)
    return min(total, 2**31 - 1)
