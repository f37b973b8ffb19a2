"""Answer facts: why an answer ended, what it cost, and which error it is instead, as generateContent says it. Pure.

    prompt     promptTokenCount + toolUsePromptTokenCount
    cached     cachedContentTokenCount, a part of the prompt
    answer     candidatesTokenCount + thoughtsTokenCount; what the prompt leaves of the total, where that is more
    thought    thoughtsTokenCount
    tier       serviceTier, or trafficType
    tools      groundingMetadata.webSearchQueries: so many searches

STOP is said of answers with calls too, and of half an answer whose rest cannot be read: that has a reason of its own.
"""

from collections.abc import Mapping
from typing import Any, Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import FinishReason, Usage
from smg_node.dialects.worker_errors import WorkerError, error_of
from smg_node.dialects.worker_usage import tier_in

_REASONS: Final[Mapping[str, FinishReason]] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    "NO_IMAGE": "stop",
    **dict.fromkeys(
        (
            "SAFETY", "RECITATION", "LANGUAGE", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "ESCALATION",
            "MODEL_ARMOR", "PUP_LIMITED_DISABLED", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION",
            "IMAGE_OTHER",
        ),
        "content_filter",
    ),
}  # fmt: skip
BROKEN: Final = frozenset(
    {"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE"}
)
"""Reasons of an answer that cannot be used, and that another attempt may give better."""
UNSIGNED: Final = "MISSING_THOUGHT_SIGNATURE"
_UNSAID: Final = "FINISH_REASON_UNSPECIFIED"
_TOKENS_MAX: Final = 2**40
_COUNTS: Final = (
    "promptTokenCount", "toolUsePromptTokenCount", "cachedContentTokenCount", "candidatesTokenCount",
    "thoughtsTokenCount", "totalTokenCount",
)  # fmt: skip


def reason_in(candidate: Mapping[str, Any]) -> str:
    """Return the vendor's reason why a candidate ended, "" for one that has not."""
    reason = candidate.get("finishReason")
    return reason if isinstance(reason, str) and reason != _UNSAID else ""


def finish_of(reason: str, *, called: bool) -> FinishReason:
    """Return why an answer ended; UPSTREAM_FAILED, with the reason as code, for one that cannot be used.

    `called`: there is a call in it.
    """
    if reason in BROKEN or reason == UNSIGNED:
        raise broken(f"the vendor gave up its answer: {reason}", reason.lower())
    finish = _REASONS.get(reason, "stop")
    return "tool_calls" if called and finish == "stop" else finish


def is_blocked(answer: Mapping[str, Any]) -> bool:
    """Whether the vendor refuses to answer this prompt at all."""
    feedback = answer.get("promptFeedback")
    return isinstance(feedback, dict) and bool(feedback.get("blockReason"))


class UsageCounts:
    """Tokens of one answer; each event of it tells all that are known by then."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._tier = ""
        self._searches = 0

    def take(self, answer: Mapping[str, Any]) -> None:
        """Take in what an answer, or an event of it, says."""
        self._searches = max(self._searches, _searches_in(answer))
        told = answer.get("usageMetadata")
        if not isinstance(told, dict):
            return
        for name in _COUNTS:
            value = told.get(name)
            if type(value) is int and 0 <= value <= _TOKENS_MAX:
                self._counts[name] = value
        self._tier = tier_in(told, "serviceTier") or tier_in(told, "trafficType") or self._tier

    def usage(self) -> Usage | None:
        """Return what the answer cost; None if nothing was said of it."""
        asked, tools, cached, said, thought, total = (self._counts.get(name, 0) for name in _COUNTS)
        prompt = asked + tools
        answer = max(said + thought, total - prompt if asked else 0)
        if not (prompt or answer):
            return None
        ran = (("web_search", self._searches),) if self._searches else ()
        return Usage(
            prompt,
            answer,
            min(cached, prompt),
            thought,
            service_tier=self._tier,
            server_tools=ran,
        )


def _searches_in(answer: Mapping[str, Any]) -> int:
    candidates = answer.get("candidates")
    for candidate in candidates if isinstance(candidates, list) else ():
        grounds = candidate.get("groundingMetadata") if isinstance(candidate, dict) else None
        queries = grounds.get("webSearchQueries") if isinstance(grounds, dict) else None
        if isinstance(queries, list):
            return len(queries)
    return 0


def vendor_error(answer: Mapping[str, Any]) -> WorkerError | None:
    """Return the error that an answer is, with Google's word for it as code; None if it is none."""
    found = error_of(answer)
    if found is None:
        return None
    error = answer.get("error")
    word = error.get("status") if isinstance(error, dict) else None
    if found.code or not isinstance(word, str) or not word.isascii() or len(word) > 64:
        return found
    return WorkerError(found.status, found.message, word, found.param)


def broken(message: str, code: str | None = None) -> SmgError:
    """Return the error for what is no answer."""
    return SmgError(ErrorKind.UPSTREAM_FAILED, message, code=code)
