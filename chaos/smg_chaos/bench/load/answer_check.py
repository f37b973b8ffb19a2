"""Answer check: compares every streamed or whole answer with the engine's script, since speed
without it is no result.

Two ways to one verdict. `Judge.quick` looks at the bytes the way a gateway usually writes them: it
costs a third of a microsecond per token and never accepts a wrong text, because it compares all of
it (garbage between the events is all it cannot see). Where it is not sure, the readers of
`answer_forms` parse everything, as one answer in sixteen is anyway.
"""

from typing import Final

import msgspec

from smg_chaos.bench.load.answer_forms import FORMS, Answer, WrongAnswerError, dechunked
from smg_chaos.bench.load.job import Api

_SAMPLE: Final = 16
_TAIL: Final = 2000


class Judge:
    """Checks answers to requests for `tokens` tokens. Without `text` any text is right."""

    def __init__(self, *, tokens: int, stream: bool, text: str | None, api: Api = "chat") -> None:
        self._form = FORMS[api]
        self._tokens = tokens
        self._stream = stream
        self._text = text
        self._count = b"%d" % tokens
        self._bytes = None if text is None else msgspec.json.encode(text)[1:-1]
        self._seen = 0
        self.careful = 0
        """Answers that were parsed completely."""

    def prompt_tokens(self, content: bytes, *, chunked: bool) -> int:
        """Return the prompt's tokens as the answer counts them; WrongAnswerError if it is not right."""
        self._seen += 1
        if self._seen % _SAMPLE != 1:
            tokens = self.quick(content)
            if tokens is not None:
                return tokens
        self.careful += 1
        return self._read(dechunked(content) if chunked else content).prompt_tokens

    def quick(self, content: bytes) -> int | None:
        """Return the prompt's tokens if the answer is right beyond doubt, else None."""
        if self._bytes is None:
            return None
        form = self._form
        if self._stream:
            try:
                pieces = content.split(form.content)
                said = b"".join([piece[: piece.index(b'"')] for piece in pieces[1:]])
            except ValueError:
                return None
        else:
            _, _, rest = content.partition(form.content)
            said = rest[: len(self._bytes)]
            if rest[len(said) : len(said) + 1] != b'"':
                return None
        tail = content[-_TAIL:]
        if said != self._bytes or form.length not in tail:
            return None
        if self._stream:
            _, done, after = tail.rpartition(form.last)
            if not done or after.strip(form.rest) or b'"error"' in content:
                return None
        return self._counted(tail)

    def _counted(self, tail: bytes) -> int | None:
        completion, prompt = self._form.completion, self._form.prompt
        at = tail.rfind(completion)
        after = tail[at + len(completion) : at + len(completion) + 12]
        if at < 0 or not after.startswith((self._count + b",", self._count + b"}")):
            return None
        digits = tail[tail.rfind(prompt) + len(prompt) :][:12].partition(b",")[0].rstrip(b"}")
        return int(digits) if digits.isdigit() and int(digits) > 0 else None

    def _read(self, content: bytes) -> Answer:
        form = self._form
        answer = form.read_stream(content) if self._stream else form.read_whole(content)
        if answer.total_tokens != answer.prompt_tokens + answer.completion_tokens:
            raise WrongAnswerError("usage does not add up")
        if answer.prompt_tokens < 1:
            raise WrongAnswerError("a prompt of no tokens")
        if self._text is None:
            if not answer.text or not 0 < answer.completion_tokens <= self._tokens:
                raise WrongAnswerError(f"{answer.completion_tokens} tokens for {self._tokens}")
            return answer
        if answer.text != self._text:
            raise WrongAnswerError(f"the text is {answer.text[:80]!r}, not {self._text[:80]!r}")
        if answer.completion_tokens != self._tokens or answer.finish != "length":
            why = f"{answer.completion_tokens} tokens, {answer.finish!r}; not {self._tokens}, 'length'"
            raise WrongAnswerError(why)
        return answer
