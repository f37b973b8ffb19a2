"""Rows for scorers: one for each token that usage counts, prompt and answer, or an error."""

from collections.abc import Sequence
from typing import Any

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.answer import Choice, Collector
from smg_node.core.generation.events import Begin, Event, PromptEcho
from smg_node.core.generation.request import Sampling
from smg_node.engines.chunk import Chunk, IdLogprob
from smg_node.parsers.reading.parser import Plain
from smg_node.pipeline.stream.choice_stream import ChoiceStream
from smg_node.pipeline.stream.end_tokens import ends_of
from smg_node.pipeline.stream.generation_stream import Echo, GenerationStream
from support.models.bytewise_tokenizer import EOS, BytewiseTokenizer

TOKENIZER = BytewiseTokenizer()
PROMPT = tuple(b"Say")


def rows(ids: Sequence[int]) -> tuple[IdLogprob, ...]:
    return tuple(IdLogprob(one, -0.5, ((one, -0.5),)) for one in ids)


def story_of(answers: int = 1, *, due: bool = True, **changes: Any) -> GenerationStream:
    sampling = Sampling(**{"max_tokens": 9, "logprobs": 1, **changes})
    streams = [
        ChoiceStream(
            choice,
            sampling=sampling,
            ends=ends_of(sampling, TOKENIZER, ()),
            tokenizer=TOKENIZER,
            detokenizer=TOKENIZER.detokenizer(
                prompt_tail=(), skip_special_tokens=True, spaces_between_special_tokens=True
            ),
            parser=Plain(),
            scored=True,
        )
        for choice in range(answers)
    ]
    begin = Begin("0" * 32, "m", 0, len(PROMPT))
    echoes = (Echo("Say", PROMPT),)
    return GenerationStream(begin, streams, answers, TOKENIZER, echoes, rows_due=due)


def answered(story: GenerationStream, out: list[Event]) -> list[Choice]:
    story.end(out)
    collector = Collector(len(story.choices))
    collector.feed(out)
    return collector.answer().choices


def counted(choice: Choice) -> tuple[list[int], list[int]]:
    """Return the ids of the rows of the prompt and of the answer."""
    assert choice.echo is not None
    return (
        [row.token_id for row in choice.echo.logprobs],
        [row.token_id for row in choice.logprobs],
    )


@pytest.mark.parametrize(
    ("ids", "changes", "text"),
    [
        ([EOS], {"max_tokens": 1}, ""),
        ([97, EOS], {}, "a"),
        ([97, 98, 99], {"stop": ("bc",)}, "a"),
        ([97, 98, 99], {"stop_token_ids": (99,)}, "ab"),
        ([0xC3], {"max_tokens": 1}, "\ufffd"),
        ([0xC3, 0xA9, EOS], {}, "é"),
        ([EOS, 97, EOS], {"ignore_eos": True, "max_tokens": 3}, "a"),
        ([97, 98], {"max_tokens": 2, "min_tokens": 2}, "ab"),
    ],
    ids=[
        "end of text only",
        "end of text",
        "a stop string",
        "a stop id",
        "half a character",
        "a character of two tokens",
        "hidden tokens",
        "the least number",
    ],
)
@pytest.mark.parametrize("together", [False, True])
def test_every_token_that_is_counted_has_a_row(
    ids: list[int],
    changes: dict[str, Any],
    text: str,
    together: bool,
) -> None:
    story, out = story_of(**changes), list[Event]()
    for part in [ids] if together else [[one] for one in ids]:
        story.feed(0, Chunk(0, tuple(part), rows(part), prompt_logprobs=rows(PROMPT)), out)
    story.feed(0, Chunk(0, (), finish="stop"), out)
    [choice] = answered(story, out)
    assert counted(choice) == (list(PROMPT), ids)
    assert choice.text() == text
    assert story.used is not None
    assert story.used.completion_tokens == len(ids)


def test_no_token_at_all_is_allowed_and_the_prompt_has_its_rows() -> None:
    story, out = story_of(max_tokens=0), list[Event]()
    story.feed(0, Chunk(0, (97,), rows((97,)), prompt_logprobs=rows(PROMPT)), out)
    assert story.over(0, 1)
    [choice] = answered(story, out)
    assert counted(choice) == (list(PROMPT), [])
    assert choice.finish is not None
    assert (choice.text(), choice.finish.reason) == ("", "length")
    assert story.used is not None
    assert story.used.completion_tokens == 0


def test_an_engine_may_leave_out_the_first_token_of_a_prompt() -> None:
    story, out = story_of(), list[Event]()
    story.feed(0, Chunk(0, (EOS,), rows((EOS,)), prompt_logprobs=rows(PROMPT[1:])), out)
    [echo] = [event for event in out if isinstance(event, PromptEcho)]
    assert [row.logprob for row in echo.logprobs] == [None, -0.5, -0.5]
    assert [row.token for row in echo.logprobs] == ["S", "a", "y"]
    assert echo.logprobs[0].top == ()


def test_an_answer_waits_for_the_rows_that_come_with_its_end() -> None:
    story, out = story_of(), list[Event]()
    story.feed(0, Chunk(0, (97,), rows((97,))), out)
    story.feed(0, Chunk(0, (98,), rows((98,))), out)
    assert [type(event) for event in out] == [Begin]
    story.feed(0, Chunk(0, (), finish="stop", prompt_logprobs=rows(PROMPT)), out)
    [choice] = answered(story, out)
    assert counted(choice) == (list(PROMPT), [97, 98])


def test_rows_that_come_with_one_answer_are_those_of_the_others_too() -> None:
    story, out = story_of(2), list[Event]()
    story.feed(1, Chunk(1, (98, EOS), rows((98, EOS))), out)
    story.feed(1, Chunk(1, (), finish="stop"), out)
    assert [type(event) for event in out] == [Begin]
    story.feed(0, Chunk(0, (97, EOS), rows((97, EOS)), prompt_logprobs=rows(PROMPT)), out)
    assert story.over(0, 2)
    assert [counted(choice) for choice in answered(story, out)] == [
        (list(PROMPT), [97, EOS]),
        (list(PROMPT), [98, EOS]),
    ]


@pytest.mark.parametrize(
    "chunks",
    [
        [Chunk(0, (97,), rows((97,))), Chunk(0, (), finish="stop")],
        [Chunk(0, (97,), rows((97,)), prompt_logprobs=rows(PROMPT[2:]))],
        [Chunk(0, (97,), rows((97,)), prompt_logprobs=rows((*PROMPT, 97)))],
        [Chunk(0, (97,), (), prompt_logprobs=rows(PROMPT)), Chunk(0, (), finish="stop")],
        [Chunk(0, (97,), (), prompt_logprobs=rows(PROMPT)), Chunk(0, (EOS,), rows((EOS,)))],
    ],
    ids=["none of the prompt", "too few", "too many", "none of the answer", "one of two"],
)
def test_an_engine_that_leaves_rows_out_has_failed(chunks: list[Chunk]) -> None:
    story, (*before, last) = story_of(), chunks
    for chunk in before:
        story.feed(0, chunk, [])
    with pytest.raises(SmgError) as caught:
        story.feed(0, last, [])
    assert caught.value.kind is ErrorKind.UPSTREAM_FAILED
    assert caught.value.code == "upstream_logprobs_missing"


def test_what_was_held_of_a_call_that_broke_is_forgotten() -> None:
    story, out = story_of(max_tokens=0), list[Event]()
    story.feed(0, Chunk(0, (98,), rows((98,))), out)
    story.conclude(0, 1, out)
    assert not story.over(0, 1)
    story = story_of()
    out = []
    story.feed(0, Chunk(0, (98,), rows((98,))), out)
    story.conclude(0, 1, out)
    story.feed(0, Chunk(0, (97, EOS), rows((97, EOS)), prompt_logprobs=rows(PROMPT)), out)
    [choice] = answered(story, out)
    assert counted(choice) == (list(PROMPT), [97, EOS])


def test_a_prompt_is_echoed_at_once_where_no_rows_are_due() -> None:
    story, out = story_of(due=False), list[Event]()
    story.feed(0, Chunk(0, (97,), rows((97,))), out)
    assert [type(event) for event in out[:2]] == [Begin, PromptEcho]
