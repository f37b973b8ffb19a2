"""Response object of the Realtime API, and its usage. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Usage
from smg_node.dialects.openai_errors import error_object
from smg_node.dialects.responses.events.final_status import FinalStatus

CancelReason: TypeAlias = Literal["client_cancelled", "turn_detected"]
_ERROR_KEYS: Final = ("type", "code", "message")
# The public list of reasons is closed. Rounds of tools that ran out are nearest to tokens that did.
_REASONS: Final = {"max_messages": "max_output_tokens"}


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """What of a response never changes. `conversation_id` is None for one beside the conversation."""

    id: str
    conversation_id: str | None
    max_output_tokens: int | str
    output: Mapping[str, Any]
    """Format and voice."""
    metadata: Mapping[str, str] | None

    def shown(
        self,
        status: str,
        output: Sequence[Mapping[str, Any]] = (),
        *,
        details: Mapping[str, Any] | None = None,
        usage: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return the public object."""
        return {
            "id": self.id,
            "object": "realtime.response",
            "status": status,
            "status_details": details,
            "output": output,
            "conversation_id": self.conversation_id,
            "output_modalities": ["text"],
            "max_output_tokens": self.max_output_tokens,
            "audio": {"output": self.output},
            "metadata": self.metadata,
            "usage": usage,
        }


def status_details(
    ended: FinalStatus, cancelled_by: CancelReason | None = None
) -> dict[str, Any] | None:
    """Return `status_details` of a response that has ended so; None for a completed one."""
    match ended.status:
        case "completed":
            return None
        case "failed":
            assert ended.error is not None, "what failed has an error"
            return {"type": "failed", "error": _error(ended.error)}
        case "cancelled":
            return {"type": "cancelled", "reason": cancelled_by or "client_cancelled"}
        case "incomplete":
            reason = ended.reason or "max_output_tokens"
            return {"type": "incomplete", "reason": _REASONS.get(reason, reason)}


def _error(error: SmgError) -> dict[str, Any]:
    told = error_object(error)
    return {key: told[key] for key in _ERROR_KEYS}


def usage_object(usage: Usage) -> dict[str, Any]:
    """Return `usage`: integers, never null. What was thought counts among the text that was said."""
    prompt, said, images = usage.prompt_tokens, usage.completion_tokens, usage.image_tokens
    cached = usage.cached_tokens
    thought = {"x_smg_reasoning_tokens": usage.reasoning_tokens} if usage.reasoning_tokens else {}
    return {
        "total_tokens": prompt + said,
        "input_tokens": prompt,
        "output_tokens": said,
        "input_token_details": {
            "text_tokens": max(prompt - images, 0),
            "audio_tokens": 0,
            "image_tokens": images,
            "cached_tokens": cached,
            "cached_tokens_details": {"text_tokens": cached, "audio_tokens": 0, "image_tokens": 0},
        },
        "output_token_details": {"text_tokens": said, "audio_tokens": 0, **thought},
    }
