"""Pass plan: the request of each pass of a model, and how an answer ends; grows by what was said and run. Pure."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from smg_node.core.context_limit import TOO_LONG_CODE
from smg_node.core.errors import SmgError
from smg_node.core.generation.events import End, Event, Finish, FinishReason
from smg_node.core.generation.request import (
    ChatPrompt,
    GenerateRequest,
    ToolChoice,
    ToolMode,
    media_of,
)
from smg_node.core.generation.tool_serving import ListedTool, RunResult, ToolServing
from smg_node.mcp.catalog.catalog import Catalog
from smg_node.mcp.search.searched_tool import SearchedTool
from smg_node.pipeline.tool_loop.call_ledger import CallLedger
from smg_node.pipeline.tool_loop.pass_stream import PassStream
from smg_node.pipeline.tool_loop.pass_turns import (
    TOOLS,
    assistant_turn,
    result_turn,
    without_pictures,
)
from smg_node.pipeline.tool_loop.prior_calls import PriorCalls
from smg_node.pipeline.tool_loop.total_usage import TotalUsage

_UNSUPPORTED: Final = "unsupported_parameter"
_NOT_NOW: Final = "this model cannot be shown it now"
_NOT_SHOWN: Final[Mapping[str, str]] = MappingProxyType(
    {
        "media_busy": "there is no room for it at the moment",
        "media_too_large": "it does not fit beside the other pictures",
        TOO_LONG_CODE: "it does not fit into this conversation",
        # A video of a client that takes no pictures beside it is what such an error is about.
        _UNSUPPORTED: "this model cannot be shown it beside the rest of this conversation",
    }
)
"""What a model is told of pictures by the error that a pass with them ends in."""
_SERVER_ERRORS: Final = 500


class PassPlan:
    """Requests of one answer's passes. `changed`: the next one is not what `first_request` said."""

    def __init__(
        self,
        request: GenerateRequest,
        prompt: ChatPrompt,
        serving: ToolServing,
        catalog: Catalog,
    ) -> None:
        self._catalog = catalog
        self._prompt = first_prompt(prompt, serving, catalog)
        self._request = msgspec.structs.replace(request, serving=None, alike=False)
        self._client_tools = prompt.tools
        self._usage = TotalUsage()
        self._rounds = 0
        self._last = self._prompt.choice.mode == "none"
        """Whether no tool may be called, or none any more."""
        self.changed = False
        self.rounds_spent = 0
        """How many rounds there were, where the answer ends because there may be no more; 0 otherwise."""

    @property
    def client_names(self) -> tuple[str, ...]:
        """Names of the client's own functions."""
        return tuple(tool.name for tool in self._client_tools)

    @property
    def pictures(self) -> int:
        """Pictures of the conversation, results of tools among it."""
        return len(media_of(self._prompt.turns))

    @property
    def allowed(self) -> tuple[str, ...] | None:
        """The only functions that may be called, None for all; none at all where the request wants no calls."""
        choice = self._prompt.choice
        return () if choice.mode == "none" else choice.allowed

    def searched_clients(self) -> tuple[SearchedTool, ...]:
        """Return the client's functions that the prompt does not show."""
        return tuple(
            SearchedTool(
                tool.name,
                ListedTool(tool.name, tool.description or "", dict(tool.parameters or {})),
            )
            for tool in self._client_tools
            if tool.deferred
        )

    def first_request(self) -> GenerateRequest:
        """Return the request of the first pass, as far as it is known before anything was run."""
        return self.request()

    def request(self) -> GenerateRequest:
        """Return the request of the next pass."""
        sampling = self._request.sampling
        used = self._usage.completion_tokens
        if used:
            most = None if sampling.max_tokens is None else max(1, sampling.max_tokens - used)
            least = max(0, sampling.min_tokens - used)
            sampling = msgspec.structs.replace(sampling, max_tokens=most, min_tokens=least)
        return msgspec.structs.replace(self._request, prompts=(self._prompt,), sampling=sampling)

    def add_prior(self, prior: PriorCalls, results: Mapping[str, RunResult]) -> None:
        """Take what came of calls that were made before this answer."""
        turns = prior.turns(self._prompt.turns, results)
        self._prompt = msgspec.structs.replace(self._prompt, turns=turns)
        self.changed = True

    def drop_pictures(self, error: SmgError) -> bool:
        """Take the pictures that tools answered out of the prompt, if that may mend what `error` says of a pass.

        Results then say so: a model that is told in words goes on, and what its tools did is not lost. False where there
        are none, or the error is of something else.
        """
        why = _NOT_SHOWN.get(error.code)
        own = (error.where or "").startswith(TOOLS) and error.status < _SERVER_ERRORS
        if own and (why is None or error.code == _UNSUPPORTED):
            why = _NOT_NOW
        if why is None:
            return False
        turns = without_pictures(self._prompt.turns, why)
        if turns == tuple(self._prompt.turns):
            return False
        self._prompt = msgspec.structs.replace(self._prompt, turns=turns)
        return True

    def after(
        self,
        stream: PassStream,
        results: Mapping[str, RunResult],
        ledger: CallLedger,
        *,
        rounds_max: int,
    ) -> list[Event]:
        """Take a pass whose runs are over; return the end of the answer, nothing if another pass is to follow."""
        self._rounds += 1
        assert stream.usage is not None, "a pass that did not fail says what it cost"
        self._usage.add(stream.usage)
        reason = self._reason(stream, rounds_max)
        if reason is not None:
            if reason == "pause" and self._rounds >= rounds_max:
                self.rounds_spent = self._rounds
            finish = stream.finish
            matched = None if finish is None else finish.matched
            return [Finish(0, reason, matched, self.rounds_spent), self._usage.total(), End()]
        self._grow(stream, results)
        if ledger.exhausted:
            self._last = True
        choice = self._prompt.choice
        self._prompt = msgspec.structs.replace(self._prompt, choice=self._next_choice(choice))
        self.changed = True
        return []

    def _reason(self, stream: PassStream, rounds_max: int) -> FinishReason | None:
        """Return how the answer ends with this pass; None where it goes on."""
        assert stream.finish is not None, "a pass that did not fail finishes"
        reason = stream.finish.reason
        fates = {call.judged.fate for call in stream.calls}
        ours = fates - {"client"}
        if not ours:
            return reason
        if reason not in ("stop", "tool_calls"):
            return reason
        if "client" in fates:
            return "tool_calls"
        if "ask" in fates or self._last:
            return "stop"
        most = self._request.sampling.max_tokens
        if most is not None and self._usage.completion_tokens >= most:
            return "length"
        return "pause" if self._rounds >= rounds_max else None

    def _grow(self, stream: PassStream, results: Mapping[str, RunResult]) -> None:
        owners = {
            call.call_id: call.judged.owner
            for call in stream.calls
            if call.judged.owner is not None
        }
        said = assistant_turn(stream.blocks, owners)
        told = [result_turn(call.call_id, results[call.call_id]) for call in stream.calls]
        turns = (*self._prompt.turns, said, *told)
        self._prompt = msgspec.structs.replace(self._prompt, turns=turns)

    def _next_choice(self, choice: ToolChoice) -> ToolChoice:
        """Return the choice of later passes: what a request forces, it forces once."""
        mode: ToolMode = "none" if self._last or choice.mode == "none" else "auto"
        if mode == choice.mode and not choice.name:
            return choice
        return dataclasses.replace(choice, mode=mode, name="")


def first_prompt(prompt: ChatPrompt, serving: ToolServing, catalog: Catalog) -> ChatPrompt:
    """Return the prompt of the first pass: that of the request, with the tools of the catalog beside the client's."""
    return msgspec.structs.replace(
        prompt,
        tools=(*prompt.tools, *catalog.functions()),
        turns=catalog.renamed(prompt.turns),
        choice=_served_choice(prompt, serving, catalog),
    )


def _served_choice(prompt: ChatPrompt, serving: ToolServing, catalog: Catalog) -> ToolChoice:
    """Return the choice of the first pass, in which tools of ours have the names that the model knows them by."""
    choice, served = prompt.choice, serving.choice
    if served is not None:
        # Whoever asks is not asked for what it cannot call: a server may be away.
        ours = [name for chosen in served.tools for name in catalog.chosen(chosen)]
        choice = dataclasses.replace(
            choice, allowed=tuple(dict.fromkeys((*(choice.allowed or ()), *ours)))
        )
    insisted = [
        name
        for name, tool in catalog.offered.items()
        if tool.builtin is not None and tool.builtin.insisted
    ]
    if insisted:
        choice = dataclasses.replace(choice, mode="named", name=insisted[0])
    callable_names = {*catalog.offered, *(tool.name for tool in prompt.tools)}
    if choice.allowed is not None:
        callable_names &= set(choice.allowed)
    if choice.mode == "required" and not callable_names:
        return dataclasses.replace(choice, mode="none")
    return choice
