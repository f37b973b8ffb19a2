"""Trace context of the W3C, read from `traceparent` and `tracestate`; tolerates malformed values.

Follows "Trace Context" (W3C Recommendation, 2021): a `traceparent` that is not exactly right is as
good as none, and a malformed `tracestate` is dropped while the trace goes on.
"""

import re
from dataclasses import dataclass
from typing import Final

_PARENT: Final = re.compile(
    r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[ -~]*)?", re.ASCII
)
_STATE: Final = re.compile(r"[ -~\t]{1,1024}", re.ASCII)
_STATE_MEMBERS_MAX: Final = 32
_SAMPLED: Final = 1
_NO_TRACE_ID: Final = "0" * 32
_NO_SPAN_ID: Final = "0" * 16


@dataclass(frozen=True, slots=True)
class TraceContext:
    """A request's place in its caller's trace. Ids are lower-case hex; `state` may be empty."""

    trace_id: str
    span_id: str
    sampled: bool
    state: str = ""

    def headers(self) -> dict[str, str]:
        """Return the two headers again, in version 00 of the format."""
        headers = {"traceparent": f"00-{self.trace_id}-{self.span_id}-{int(self.sampled):02x}"}
        if self.state:
            headers["tracestate"] = self.state
        return headers


def parse(parent: str, state: str = "") -> TraceContext | None:
    """Return the context that the two headers describe, or None where they describe none."""
    if len(parent) > 512:
        return None
    match = _PARENT.fullmatch(parent.strip(" \t"))
    if match is None:
        return None
    version, trace_id, span_id, flags, more = match.groups()
    if version == "ff" or (version == "00" and more is not None):
        return None
    if trace_id == _NO_TRACE_ID or span_id == _NO_SPAN_ID:
        return None
    return TraceContext(trace_id, span_id, bool(int(flags, 16) & _SAMPLED), _clean(state))


def _clean(state: str) -> str:
    if not _STATE.fullmatch(state) or state.count(",") >= _STATE_MEMBERS_MAX:
        return ""
    return state.strip(" \t")
