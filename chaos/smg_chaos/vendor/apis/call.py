"""Call of an API: one admitted request with all that reading it and answering it takes, and the interface of APIs."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol

from smg_chaos.vendor.answers.answer import Answer
from smg_chaos.vendor.answers.conversation import Conversation
from smg_chaos.vendor.answers.seals import Seals
from smg_chaos.vendor.errors.vendor_error import VendorError
from smg_chaos.vendor.hostings.hosting import Hosting
from smg_chaos.vendor.hostings.models import Traits
from smg_chaos.vendor.hostings.operations import Operation


class Frame(NamedTuple):
    """One event as it goes over the wire, and how many tokens of the answer it has."""

    content: bytes
    tokens: int = 0


USUAL_TIER: Final = "default"
_TIERS: Final = ("flex", "priority")
"""Service tiers that are served where they are asked for; any other wish gets the usual one."""


class Call(NamedTuple):
    """One request. `scope` is the account that encrypted state belongs to; `strict`: what vendors mend is refused."""

    kind: str
    hosting: Hosting
    operation: Operation
    quirks: frozenset[str]
    headers: Mapping[str, str]
    query: Mapping[str, str]
    body: dict[str, Any]
    model: str
    traits: Traits
    seals: Seals
    scope: str
    strict: bool

    @property
    def tier(self) -> str:
        """The service tier, as OpenAI's APIs ask for it and tell it."""
        asked = self.body.get("service_tier")
        return asked if asked in _TIERS else USUAL_TIER


class Api(Protocol):
    """One API. All its methods are pure."""

    content_type: str
    """Type of the stream."""

    def read(self, call: Call) -> Conversation:
        """Return what the request says; VendorError if the vendor would refuse it."""
        ...

    def whole(self, call: Call, conversation: Conversation, answer: Answer) -> Any:
        """Return the answer in one piece, as a value of JSON."""
        ...

    def frames(self, call: Call, conversation: Conversation, answer: Answer) -> list[Frame]:
        """Return the answer as events, with the true end."""
        ...

    def failure(self, call: Call, error: VendorError, request_id: str) -> bytes:
        """Return an error as it comes inside a stream."""
        ...
