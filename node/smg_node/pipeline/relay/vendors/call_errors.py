"""Call errors: a refusal that the same request can do without, and an answer of another form than was asked for."""

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.http.vendor_side import Refusal
from smg_node.pipeline.relay.relay_call import Head


class RefusedError(Exception):
    """A vendor refused what the same request can do without."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.error.message)
        self.without_state = refusal.without_state


def misfit(head: Head) -> SmgError:
    """Return the error for an answer in one piece instead of a stream, or the other way round."""
    did = (
        "streamed an answer that was asked for whole"
        if head.events
        else "did not stream its answer"
    )
    return SmgError(ErrorKind.UPSTREAM_FAILED, f"the vendor {did}")
