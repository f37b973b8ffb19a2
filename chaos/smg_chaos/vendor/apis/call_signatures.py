"""Call signatures of Gemini, by either of its doors: which calls need one, and which are good."""

from typing import Any, Final

from smg_chaos.vendor.apis.call import Call
from smg_chaos.vendor.errors.vendor_error import Reason, VendorError

SKIP_WORDS: Final = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
"""What Gemini takes instead of a signature, for calls it did not make."""


def check_call_signature(call: Call, signature: Any, name: str, path: str) -> None:
    """Refuse a call of Gemini whose signature is missing where its model wants one, or was changed."""
    if not signature:
        if call.traits.signs_calls:
            said = (
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to "
                f"work correctly. Function call `{name}`, position {path}."
            )
            raise VendorError(Reason.BAD_STATE, said, path=path)
        return
    if signature in SKIP_WORDS and not call.strict:
        return
    if not call.seals.holds(str(signature), "call", "google", name):
        raise VendorError(Reason.BAD_STATE, "Thought signature is not valid.", path=path)
