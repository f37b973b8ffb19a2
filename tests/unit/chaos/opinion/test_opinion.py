"""Answers made up by chance say to our parsers what was printed; differences are told by who is wrong."""

from random import Random

import pytest
from typer.testing import CliRunner

from smg_chaos.opinion.cli import app, table
from smg_chaos.opinion.differing import Heard, compare, ours, theirs, truth
from smg_chaos.opinion.samples import Sample, as_openai, samples
from smg_chaos.opinion.spellings import SPELLINGS, THOUGHTS
from smg_node.core.generation.request import Tool


@pytest.mark.parametrize("seed", range(3))
def test_our_parsers_read_what_was_printed(seed: int) -> None:
    for sample in samples(Random(seed), 40):
        heard, said = ours(sample), truth(sample)
        assert (heard.calls, heard.arguments) == (said.calls, said.arguments), sample
        assert heard.text.strip() == said.text.strip(), sample
        assert heard.thought.strip() == said.thought.strip(), sample


def test_every_format_that_both_read_is_among_the_answers() -> None:
    made = samples(Random(1), 1)
    assert len(made) == len(SPELLINGS) + len(THOUGHTS)
    assert {one.ours for one in made} == {s.ours for s in SPELLINGS} | {t[0] for t in THOUGHTS}


_SAMPLE = Sample("hermes", "qwen", "printed", (("f", {"a": 1}),), "Done.", hard=frozenset({"x"}))
_RIGHT = Heard(("f",), ({"a": 1},), "Done.\n", "")


def test_a_difference_says_who_is_wrong() -> None:
    wrong = Heard(("f",), ({"a": 2},), "Done.", "")
    for we, they, who in (
        (_RIGHT, wrong, "theirs"),
        (wrong, _RIGHT, "ours"),
        (wrong, wrong, "both"),
    ):
        found = compare([(_SAMPLE, we, they)])
        assert list(found) == [("hermes", "qwen", f"arguments ({who} wrong)")]
        assert "1 differences" in table(found, 1, examples=True)
    assert compare([(_SAMPLE, _RIGHT, _RIGHT)]) == {}


def test_what_the_other_program_answers_is_read() -> None:
    answer = {
        "remaining_text": "Done.",
        "tool_calls": [{"function": {"name": "f", "arguments": '{"a":1}'}}],
    }
    assert theirs(_SAMPLE, answer) == Heard(("f",), ({"a": 1},), "Done.", "")
    broken = {"tool_calls": [{"function": {"name": "f", "arguments": '{"a":'}}]}
    assert theirs(_SAMPLE, broken).arguments == ('{"a":',)


def test_tools_are_told_as_requests_have_them() -> None:
    (tool,) = as_openai([Tool("f", parameters={"type": "object"})])
    assert tool == {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def test_without_the_reference_gateway_it_says_how_to_get_it() -> None:
    result = CliRunner().invoke(app, ["--peers", "nowhere"])
    assert result.exit_code == 1
    assert "make bench-peers" in result.output
