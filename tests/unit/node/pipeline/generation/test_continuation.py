"""The calls that finish the answers of one that broke."""

import json

import pytest
from msgspec.structs import replace

from smg_node.core.generation.events import Begin, Event
from smg_node.core.generation.request import Constraint, Sampling, token_ids
from smg_node.engines.chunk import Chunk
from smg_node.parsers.reading.parser import Plain
from smg_node.pipeline.generation.call_plan import Leg
from smg_node.pipeline.generation.continuation import CannotGoOnError, remarks, rest_of
from smg_node.pipeline.stream.choice_stream import ChoiceStream
from smg_node.pipeline.stream.end_tokens import ends_of
from smg_node.pipeline.stream.generation_stream import GenerationStream
from support.models.bytewise_tokenizer import EOS, BytewiseTokenizer

TOKENIZER = BytewiseTokenizer()
PROMPT = token_ids([1, 2, 3])
WISH = Sampling(max_tokens=20, min_tokens=4, seed=7, prompt_logprobs=1)


def scene(
    *said: bytes, sampling: Sampling = WISH, over: tuple[int, ...] = ()
) -> tuple[Leg, GenerationStream]:
    """One call with so many answers, of which this was said."""
    count = len(said)
    streams = [
        ChoiceStream(
            at,
            sampling=sampling,
            ends=ends_of(sampling, TOKENIZER, ()),
            tokenizer=TOKENIZER,
            detokenizer=TOKENIZER.detokenizer(
                prompt_tail=(), skip_special_tokens=True, spaces_between_special_tokens=True
            ),
            parser=Plain(),
        )
        for at in range(count)
    ]
    story = GenerationStream(
        Begin("id", "m", 0, 3), streams, answers_per_prompt=count, tokenizer=TOKENIZER
    )
    out: list[Event] = []
    for at, ids in enumerate(said):
        if ids:
            story.feed(at, Chunk(at, tuple(ids)), out)
        if at in over:
            story.feed(at, Chunk(at, (EOS,), finish="stop"), out)
    return Leg(0, count, PROMPT, replace(sampling, n=count)), story


def test_a_call_that_said_nothing_is_made_again() -> None:
    leg, story = scene(b"", b"")
    assert rest_of(leg, story, TOKENIZER, prompt_max=None) == (leg,)


def test_what_was_said_follows_the_prompt_and_is_taken_off_the_limits() -> None:
    leg, story = scene(b"abc")
    (rest,) = rest_of(leg, story, TOKENIZER, prompt_max=None)
    assert list(rest.ids) == [1, 2, 3, *b"abc"]
    assert rest.done == 3
    assert rest.sampling == replace(
        WISH, n=1, max_tokens=17, min_tokens=1, seed=10, prompt_logprobs=None
    )
    # And again, from there.
    story.feed(0, Chunk(0, tuple(b"de")), [])
    (again,) = rest_of(rest, story, TOKENIZER, prompt_max=None)
    assert list(again.ids) == [1, 2, 3, *b"abcde"]
    assert again.done == 5
    assert (again.sampling.max_tokens, again.sampling.min_tokens, again.sampling.seed) == (
        15,
        0,
        12,
    )


def test_each_unfinished_answer_goes_on_by_itself_with_a_seed_of_its_own() -> None:
    leg, story = scene(b"abc", b"", b"xy", over=(0,))
    legs = rest_of(leg, story, TOKENIZER, prompt_max=None)
    assert [(one.first, one.count, one.done) for one in legs] == [(1, 1, 0), (2, 1, 2)]
    assert [list(one.ids) for one in legs] == [[1, 2, 3], [1, 2, 3, *b"xy"]]
    assert [one.sampling.seed for one in legs] == [8, 11]
    assert [one.sampling.prompt_logprobs for one in legs] == [1, None]
    assert [one.sampling.max_tokens for one in legs] == [20, 18]


def test_a_seed_stays_within_its_bits() -> None:
    leg, story = scene(b"ab", sampling=replace(WISH, seed=(1 << 63) - 1))
    (rest,) = rest_of(leg, story, TOKENIZER, prompt_max=None)
    assert rest.sampling.seed == 1


def test_nothing_is_left_of_answers_that_are_over() -> None:
    leg, story = scene(b"abc", b"d", over=(0, 1))
    assert rest_of(leg, story, TOKENIZER, prompt_max=None) == []


@pytest.mark.parametrize(("most", "fits"), [(6, True), (5, False)])
def test_prompt_and_answer_must_be_a_prompt_that_engines_take(most: int, fits: bool) -> None:
    leg, story = scene(b"abc")
    if fits:
        assert rest_of(leg, story, TOKENIZER, prompt_max=most)
        return
    with pytest.raises(CannotGoOnError, match="have 6 tokens, and a prompt may have 5"):
        rest_of(leg, story, TOKENIZER, prompt_max=most)


def texts_of(leg: Leg) -> list[str]:
    constraint = leg.sampling.constraint
    assert constraint is not None
    assert (constraint.kind, constraint.where) == ("choice", "guided_choice")
    found: list[str] = json.loads(constraint.value)
    return found


def choice(*texts: str) -> Constraint:
    return Constraint("choice", json.dumps(texts), "guided_choice")


@pytest.mark.parametrize("kind", ["json_object", "json_schema", "regex", "ebnf", "structural_tag"])
def test_a_grammar_cannot_be_taken_up_in_the_middle(kind: str) -> None:
    sampling = replace(WISH, constraint=Constraint(kind, "x", "response_format"))  # type: ignore[arg-type]  # all of them
    with pytest.raises(CannotGoOnError, match=f"{kind} constraint"):
        rest_of(*scene(b"{", sampling=sampling), TOKENIZER, prompt_max=None)
    leg, story = scene(b"", sampling=sampling)
    assert rest_of(leg, story, TOKENIZER, prompt_max=None) == (leg,)


@pytest.mark.parametrize(
    ("texts", "said", "left"),
    [
        (("paris", "parma", "rome"), b"par", ["is", "ma"]),
        (("paris", "parma", "rome"), b"r", ["ome"]),
        (("été",), "é".encode(), ["té"]),
    ],
)
def test_what_is_left_of_a_choice_is_a_choice(
    texts: tuple[str, ...], said: bytes, left: list[str]
) -> None:
    leg, story = scene(said, sampling=replace(WISH, constraint=choice(*texts)))
    (rest,) = rest_of(leg, story, TOKENIZER, prompt_max=None)
    assert texts_of(rest) == left
    # A second break is seen from the first one on.
    story.feed(0, Chunk(0, tuple(left[0][:1].encode())), [])
    if len(left[0]) > 1:
        (again,) = rest_of(rest, story, TOKENIZER, prompt_max=None)
        assert texts_of(again) == [text[1:] for text in left if text[0] == left[0][0]]


@pytest.mark.parametrize(
    ("texts", "said"),
    [(("ab", "abc"), b"ab"), (("ab",), b"ab"), (("ab",), b"x"), (("été",), b"\xc3")],
    ids=["may be over", "is over", "none of them", "half a character"],
)
def test_a_choice_that_is_not_certain_is_not_gone_on_with(
    texts: tuple[str, ...], said: bytes
) -> None:
    scene_ = scene(said, sampling=replace(WISH, constraint=choice(*texts)))
    with pytest.raises(CannotGoOnError):
        rest_of(*scene_, TOKENIZER, prompt_max=None)


def test_operators_hear_where_the_rest_is_another_draw() -> None:
    assert remarks(Sampling(temperature=0)) == ""
    assert remarks(Sampling(temperature=0, repetition_penalty=1.0)) == ""
    assert remarks(Sampling()) == "the rest is another draw"
    assert "penalties" in remarks(Sampling(temperature=0, frequency_penalty=1.0))
