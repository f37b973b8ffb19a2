"""Prefill reader: reads the stream of a pair's prefill engine: prompt figures, and the parameters
for its partner. Pure.

The token it draws is ignored: the second engine gets it with the blocks, or draws it again.
What it leaves for its partner is checked to be what the contract says it is, because an engine that is told
anything else refuses the request, and that would look like the client's mistake.
"""

from collections.abc import Sequence
from dataclasses import replace

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.chunk import Chunk
from smg_node.engines.contracts.kv_transfer import checked
from smg_node.engines.contracts.wire import Message
from smg_node.engines.engine import Prefilled
from smg_node.engines.grpc.stream_reader import StreamReader


class HandoverReader(StreamReader):
    """A `StreamReader` of one answer; `prefilled` is what was said so far. An abort is a failure, also our own."""

    prefilled: Prefilled = Prefilled()

    def take(self, batch: Sequence[bytes], chunks: list[Chunk]) -> None:
        """See `StreamReader.take`; message by message, since each says something of the prompt."""
        wire = self._wire
        assert wire is not None
        for data in batch:
            message = wire.read(data)
            chunk = self.feed(message) if message is not None else None
            if chunk is not None:
                chunks.append(chunk)

    def feed(self, message: Message) -> Chunk | None:
        """See `StreamReader.feed`; UPSTREAM_FAILED for a partner's word that is none, too."""
        chunk = super().feed(message)
        if chunk is None:
            return None
        if chunk.finish == "abort":
            raise _aborted()
        self.prefilled = _heard(self.prefilled, chunk)
        if message.final:
            self.prefilled = replace(self.prefilled, transfer=checked(message.transfer))
        return chunk

    def end(self) -> list[Chunk]:
        """Take the end of the stream; UPSTREAM_FAILED if the prompt was not worked off until then."""
        if self.aborted and not self.over:
            raise _aborted()
        return list(super().end())


def _heard(so_far: Prefilled, chunk: Chunk) -> Prefilled:
    return replace(
        so_far,
        prompt_tokens=so_far.prompt_tokens if chunk.prompt_tokens < 0 else chunk.prompt_tokens,
        cached_tokens=so_far.cached_tokens if chunk.cached_tokens < 0 else chunk.cached_tokens,
        prompt_logprobs=chunk.prompt_logprobs or so_far.prompt_logprobs,
    )


def _aborted() -> SmgError:
    return SmgError(
        ErrorKind.UPSTREAM_FAILED,
        "the prompt was dropped before the engine had worked it off",
        code="upstream_abort",
    )
