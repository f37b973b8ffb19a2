"""Request context: caller, deadline, ids and upstream headers of one request on its way through the
node.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

if TYPE_CHECKING:
    from smg_node.core.generation.outcome import Outcome

Priority: TypeAlias = Literal["system", "interactive", "default", "bulk"]
"""What kind of work a request is: who goes first where all have to wait."""
PRIORITIES: Final[tuple[Priority, ...]] = ("system", "interactive", "default", "bulk")
"""All of them, the most urgent first."""


class RequestContext(msgspec.Struct, frozen=True, gc=False):
    """The caller of a request, its deadline, and the ids under which it is known elsewhere.

    `deadline_s` is on the monotonic clock. `upstream_headers` (traceparent, tracestate,
    x-request-id) travel to the engine as gRPC metadata; keys are lower case. `caller` is a digest
    of the credential that came with the request, "" without one; `client` the address it came from.
    `key_id` and `tenant` are those of the API key, "" where none was needed. `received_ms` is the
    wall clock when it came, for readers that need no exact time; `token` are 32 hexadecimal digits
    that no other request of this node has. Both are empty for a request that came from no listener.
    `goes_on`: it is a further generation of a request that has entered, and no request by itself. `outcomes` takes the
    outcome of a generation that is part of a request, instead of all who count requests. `patient`: what was done for
    the request is lost if it is refused now, so that it waits for room instead.
    """

    request_id: str
    received_s: float
    deadline_s: float
    target_worker: str | None = None
    upstream_headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    caller: str = ""
    client: str = ""
    priority: Priority = "default"
    tenant: str = ""
    key_id: str = ""
    received_ms: int = 0
    token: str = ""
    goes_on: bool = False
    patient: bool = False
    outcomes: "list[Outcome] | None" = None
