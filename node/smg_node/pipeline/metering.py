"""An answer that uses up limits on tokens while it goes on, and ends where it may not have more."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from smg_node.admission.ticket import Ticket
from smg_node.core.errors import SmgError
from smg_node.core.events import Event
from smg_node.core.request import GenerateRequest
from smg_node.fleet.model import ServedModel
from smg_node.pipeline.place import Placer
from smg_node.pipeline.prepare import Prepared
from smg_node.pipeline.story import Story


async def reserve(
    ticket: Ticket,
    request: GenerateRequest,
    prepared: Sequence[Prepared],
    model: ServedModel,
    placer: Placer,
) -> None:
    """Charge prompts, and what their answers may need; LimitedError if a limit does not let them in."""
    if not ticket.metered:
        return
    keep = request.truncate_prompt_tokens
    lengths = [len(prompt.ids) for prompt in prepared]
    if keep is not None and keep > 0:
        lengths = [min(length, keep) for length in lengths]
    wanted = request.sampling.max_tokens
    most = None if wanted is None else wanted * request.choices
    if ticket.worst_case:
        context = placer.context(model)
        if context is not None:
            room = sum(max(0, context - length) for length in lengths) * request.sampling.n
            most = room if most is None else min(most, room)
    await ticket.reserve(sum(lengths), most, answers=request.choices)


async def metered(
    batches: AsyncGenerator[Sequence[Event], None], ticket: Ticket, story: Story
) -> AsyncGenerator[Sequence[Event], None]:
    """Yield the events of an answer as long as it may go on; then end it as if it had all it asked for."""
    prompt_tokens = story.usage().prompt_tokens
    async with aclosing(batches):
        async for batch in batches:
            tokens = story.tokens
            if (
                ticket.streamed(prompt_tokens, tokens)
                or story.all_over
                or await ticket.more(prompt_tokens, tokens)
            ):
                yield batch
                continue
            ticket.cut = True
            out = list(batch)
            story.cut(out)
            yield out
            return


def settle(ticket: Ticket, story: Story | None, failure: SmgError | None) -> None:
    """Give back what a generation did not use; all of it, if no engine was asked."""
    if story is None:
        ticket.void()
        return
    usage = story.usage()
    if failure is not None and not usage.completion_tokens:
        # Its client has nothing of it, and was told so.
        ticket.settle(0, 0, 0)
        return
    ticket.settle(
        usage.prompt_tokens,
        usage.cached_tokens,
        usage.completion_tokens,
        complete=failure is None and story.closed,
    )
