"""Provider dialect: interface of one API seen from the client's side: a writer, a listener and a judge.

The writer turns a `GenerateRequest` into the body of a vendor's API. The listener turns the vendor's answer into
events. The judge looks at an answer that passes unread, because the client speaks the vendor's API itself, and says
when it begins, whether it was whole, and what it cost. No dialect is built from another.
"""

from collections.abc import Collection
from typing import Any, Protocol

import msgspec

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Begin, Event, Usage
from smg_node.core.generation.request import ChatPrompt, GenerateRequest, media_of
from smg_node.dialects.worker_errors import WorkerError


class WriterOptions(msgspec.Struct, frozen=True):
    """What a writer must know of the target.

    `model` is the vendor's name of the model. Opaque state of `issuer` goes along, any other is left out.
    `output_max` is the answer's length where the API wants one and the client said none. `quirks` are names of what
    this vendor does otherwise, `lacks` the names of fields of the body that this model was found to refuse.
    """

    model: str
    issuer: str
    output_max: int = 4_096
    quirks: frozenset[str] = frozenset()
    lacks: frozenset[str] = frozenset()


class Written(msgspec.Struct, frozen=True):
    """A body, always streamed. `ignored` are the client's parameters that this API cannot say and that change nothing
    of meaning or safety.
    """

    fields: dict[str, Any]
    ignored: tuple[str, ...] = ()


def ignored_details(prompt: ChatPrompt) -> list[str]:
    """Return the paths of what is said of pictures' detail, for an API that has no word for it."""
    return [
        f"{part.where}.detail" for part in media_of(prompt.turns) if part.detail not in ("", "auto")
    ]


class AnswerListener(Protocol):
    """Reader of one answer: bytes in, events out; see `event_grammar`.

    No event is emitted before the first output, so that a vendor that fails earlier can be left for another one.
    `out` of any method takes the events. A method that raises has put in those that came before the error.
    """

    @property
    def finished(self) -> bool:
        """Whether the answer is whole, even if its usage or the end of the stream is still missing."""
        ...

    @property
    def spent(self) -> Usage | None:
        """What the vendor has said by now that the answer costs, None if nothing; its end may be missing."""
        ...

    @property
    def deltas(self) -> int:
        """How many pieces of the answer came by now."""
        ...

    def feed(self, piece: bytes, out: list[Event]) -> None:
        """Take the next bytes of a stream. UPSTREAM_FAILED for bytes that are no answer; `WorkerError` for the
        vendor's own error.
        """
        ...

    def feed_whole(self, body: bytes, out: list[Event]) -> None:
        """Take the whole body of an answer that is not streamed; errors as `feed`."""
        ...

    def end(self, out: list[Event]) -> None:
        """End the answer; errors as `feed`, and UPSTREAM_FAILED if the answer is not whole."""
        ...

    def fail(self, error: SmgError, out: list[Event]) -> None:
        """Close open blocks: nothing more comes."""
        ...


class EventJudge(Protocol):
    """Judge of an answer that passes unread: told each event's data, or the whole body.

    `begun`: something of the answer has passed, so no other target may give it. `done`: the answer is whole.
    `failure`: why it is none. `deltas` are the pieces of the answer that came by now.
    """

    begun: bool
    done: bool
    failure: SmgError | WorkerError | None
    deltas: int

    @property
    def usage(self) -> Usage | None:
        """What it costs as far as the vendor has said by now."""
        ...

    def take(self, name: bytes, data: bytes) -> None:
        """Take one event of a stream: its name ("" for none) and its data."""
        ...

    def finish(self) -> None:
        """Take in that the stream has ended; sets `failure` if the answer was not whole."""
        ...

    def whole(self, body: bytes) -> None:
        """Take the whole body of an answer that is not streamed."""
        ...


class ProviderDialect(Protocol):
    """One API as vendors serve it."""

    name: str

    def write(self, request: GenerateRequest, options: WriterOptions) -> Written:
        """Return the body of a request with one chat; INVALID_REQUEST with the path of what no such body can carry and
        would change meaning or safety.
        """
        ...

    def listen(
        self,
        begin: Begin,
        *,
        prompt_tokens: int,
        taken: Collection[str] = (),
        quirks: frozenset[str] = frozenset(),
    ) -> AnswerListener:
        """Return the listener of one answer. `begin` is emitted before its first output; `prompt_tokens` is an
        estimate, used if the vendor gives no usage; `taken` are ids of earlier calls.
        """
        ...

    def judge(self, quirks: frozenset[str] = frozenset()) -> EventJudge:
        """Return the judge of one answer."""
        ...
