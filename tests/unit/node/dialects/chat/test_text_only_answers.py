"""Answers with nothing but a text, whose bytes are put together around it, are those of any other."""

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.generation.answer import Collector
from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockStart,
    End,
    Finish,
    FinishReason,
    Usage,
)
from smg_node.core.generation.request import ChatPrompt, GenerateRequest, Sampling
from smg_node.dialects.chat.presenter import ChatPresenter
from smg_node.dialects.chat.view import ChatView
from smg_node.dialects.dialect import ParsedBody


@given(
    text=st.text(),
    model=st.text(),
    fingerprint=st.one_of(st.none(), st.text()),
    reason=st.sampled_from(["stop", "length", "content_filter"]),
    usage=st.builds(Usage, *[st.integers(0, 2**40)] * 4),
    logprobs=st.booleans(),
    view=st.builds(ChatView, matched_stop=st.booleans(), include_reasoning=st.booleans()),
)
def test_a_bare_answer_is_written_as_any_other(
    text: str,
    model: str,
    fingerprint: str | None,
    reason: FinishReason,
    usage: Usage,
    logprobs: bool,
    view: ChatView,
) -> None:
    collector = Collector(1)
    collector.feed(
        [
            Begin("1" * 32, model, 5, 3, fingerprint),
            BlockStart(0, 0, "text"),
            BlockEnd(0, 0, "text", text),
            Finish(0, reason),
            usage,
            End(),
        ]
    )
    drawn = Sampling(logprobs=0 if logprobs else None)
    wish = GenerateRequest("m", (ChatPrompt(()),), drawn, False)
    other = dataclasses.replace(view)
    object.__setattr__(other, "bare", False)
    bare, whole = (
        ChatPresenter(ParsedBody(wish, each)).answer(collector.answer()) for each in (view, other)
    )
    assert bare == whole
