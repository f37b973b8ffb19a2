"""Charged work: what a model's tokenizer does for a client, charged as a request that uses no tokens."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from smg_node.http.http_parts import HttpParts
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.middleware.caller_context import context_of
from smg_node.http.middleware.error_replies import family_of

T = TypeVar("T")


async def charged(
    parts: HttpParts, request: HttpRequest, model: str, work: Callable[[], Awaitable[T]]
) -> T:
    """Return what `work` returns, once the limits let it in; what is left is told in the reply's headers.

    LimitedError where a limit does not, NOT_FOUND for an unknown model. Nothing is charged where `work` fails.
    """
    context = context_of(request, parts.options, streamed=False)
    ticket = await parts.tokens.admit(context, model)
    if ticket is None:
        return await work()
    try:
        done = await work()
    except BaseException:
        ticket.void()
        raise
    ticket.settle(0, 0, 0)
    request.reply_headers.update(ticket.headers(family_of(request.route)))
    return done
