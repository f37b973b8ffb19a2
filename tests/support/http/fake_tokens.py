"""Token service of tests: counts characters, behind limits if a test has some."""

from collections.abc import Sequence

from smg_node.admission.admission import Admission
from smg_node.admission.ticket import Ticket
from smg_node.core.generation.request import Prompt
from smg_node.core.request_context import RequestContext
from smg_node.http.ports.tokens import Tokenized


class FakeTokens:
    """Counts characters; a `door` limits who may have them counted."""

    def __init__(self) -> None:
        self.door: Admission | None = None

    async def admit(self, context: RequestContext, model: str) -> Ticket | None:
        ticket = None if self.door is None else self.door.ticket(context, model)
        if ticket is not None:
            await ticket.enter()
        return ticket

    async def tokenize(self, model: str, prompt: Prompt) -> Tokenized:
        text = getattr(prompt, "text", "chat")
        return Tokenized([ord(c) for c in text], len(text))

    async def detokenize(self, model: str, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        return "".join(chr(i) for i in ids)
