"""Tool runs: requests whose model calls a tool and then answers, and the check of what came of each of them."""

from typing import Any, Final

import msgspec

from smg_chaos.bench.load.answer_forms import WrongAnswerError, dechunked, events
from smg_chaos.bench.load.envelopes import Envelope
from smg_chaos.bench.load.job import Flow, Prompt
from smg_chaos.bench.options import ToolLoad
from smg_chaos.engine.scripts.calls_once import ANSWER

RUNS: Final = "runs"
"""The flow of requests whose model calls a tool."""
PICTURES: Final = "pictures"
"""The flow of requests with pictures beside streams."""
SEER: Final = "seer"
"""The model that they are for."""
CALLER: Final = "caller"
"""The model that calls it."""
_QUESTION: Final = b" is the number of the page that I want. Fetch it, and tell me what you found."


def run_flow(load: ToolLoad, first: int) -> Flow:
    """Return runs as fast as they come, one after the other, in a client process of their own."""
    return Flow(
        name=RUNS,
        shape="closed",
        connections=1,
        tokens=0,
        stream=True,
        prompt=Prompt(kind="tool run", first=first, sizes=(load.result_bytes,)),
        text=ANSWER,
        model=CALLER,
        api="responses",
        process=1,
    )


class ToolRuns:
    """Requests of one text each, in Responses, with the tools of a server that the gateway knows."""

    def __init__(self, envelope: Envelope, first: int) -> None:
        self._envelope = envelope
        self._number = first

    def next(self, lane: int) -> bytes:
        """Return a request that was never made before."""
        number, self._number = self._number, self._number + 1
        before, after = self._envelope.question
        return self._envelope.around(b"%b%010d%b%b" % (before, number, _QUESTION, after))


class RunJudge:
    """Checks streams of Responses: one run, whose whole result is told, and then the model's text."""

    def __init__(self, *, text: str | None, result_bytes: int) -> None:
        self._text = text
        self._bytes = result_bytes
        self.careful = 0
        """Answers that were parsed completely: all of them."""

    def prompt_tokens(self, content: bytes, *, chunked: bool) -> int:
        """Return the prompts' tokens as the answer counts them; WrongAnswerError if it is not right."""
        self.careful += 1
        payloads = list(events(dechunked(content) if chunked else content))
        if not payloads or payloads.pop() != b"[DONE]" or not payloads:
            raise WrongAnswerError("the stream does not end with [DONE]")
        try:
            event = msgspec.json.decode(payloads[-1])
            if event["type"] != "response.completed":
                raise WrongAnswerError(f"it ends with {payloads[-1][:300]!r}")
            return self._of(event["response"])
        except (msgspec.DecodeError, LookupError, TypeError, AttributeError) as error:
            raise WrongAnswerError(f"{error!r} in {payloads[-1][:300]!r}") from None

    def _of(self, response: dict[str, Any]) -> int:
        calls = [item for item in response["output"] if item["type"] == "mcp_call"]
        if len(calls) != 1:
            raise WrongAnswerError(f"{len(calls)} runs of a tool, not one")
        if calls[0]["status"] != "completed" or calls[0]["error"]:
            raise WrongAnswerError(f"the run failed: {calls[0]['error']}")
        if len(told := calls[0]["output"].encode()) != self._bytes:
            raise WrongAnswerError(f"the result has {len(told)} bytes, not {self._bytes}")
        parts = [part for item in response["output"] for part in item.get("content") or ()]
        text = "".join(part.get("text") or "" for part in parts)
        if self._text is not None and text != self._text:
            raise WrongAnswerError(f"the text is {text[:80]!r}, not {self._text[:80]!r}")
        prompt = response["usage"]["input_tokens"]
        if type(prompt) is not int or prompt < 1:
            raise WrongAnswerError(f"usage is {response['usage']}")
        return prompt
