"""A model that calls a tool once: what it prints before and after it has a result."""

import json
from collections.abc import Sequence

import jinja2
import pytest

from smg_chaos.engine.protocol.answers import Answer
from smg_chaos.engine.scripts.calls_once import ANSWER
from smg_chaos.engine.scripts.scripts import script_of
from support.engines.simulated_engine import bundle

SCRIPT = script_of('calls-once:big {"bytes": 10, "number": NUMBER}', bundle())


def prompt(*messages: dict[str, str]) -> list[int]:
    config = json.loads(bundle().files["tokenizer_config.json"])
    template = jinja2.Environment(autoescape=False).from_string(config["chat_template"])
    text = template.render(messages=messages, add_generation_prompt=True)
    return bundle().encode(text)


def said(answer: Answer) -> str:
    return bundle().decode(answer.head)


def called(ids: Sequence[int], *, seed: int = 0) -> dict[str, object]:
    text = said(SCRIPT.answer(ids, seed, 0))
    found: dict[str, object] = json.loads(
        text.removeprefix("<tool_call>\n").removesuffix("\n</tool_call>")
    )
    return found


QUESTION = {"role": "user", "content": "Fetch page 1."}
RESULT = {"role": "tool", "content": "A page of words. " * 200}


def test_a_prompt_without_a_result_gets_a_call() -> None:
    call = called(prompt(QUESTION))
    assert call["name"] == "big"
    assert isinstance(arguments := call["arguments"], dict)
    assert arguments["bytes"] == 10
    assert 0 <= arguments["number"] < 1_000_000


def test_the_number_follows_from_the_prompt_and_the_seed() -> None:
    other = {"role": "user", "content": "Fetch page 2."}
    assert called(prompt(QUESTION)) == called(prompt(QUESTION))
    assert called(prompt(QUESTION)) != called(prompt(other))
    assert called(prompt(QUESTION)) != called(prompt(QUESTION), seed=1)


def test_a_prompt_that_ends_with_a_result_gets_the_answer() -> None:
    asked = {"role": "assistant", "content": "Let me look."}
    assert said(SCRIPT.answer(prompt(QUESTION, asked, RESULT), 0, 0)) == ANSWER


def test_the_next_question_gets_a_call_again() -> None:
    more = {"role": "user", "content": " ".join(["And then?"] * 30)}
    text = said(SCRIPT.answer(prompt(QUESTION, RESULT, more), 0, 0))
    assert text.startswith("<tool_call>")


def test_a_tool_may_have_no_arguments() -> None:
    text = said(script_of("calls-once:fail", bundle()).answer(prompt(QUESTION), 0, 0))
    assert '{"name": "fail", "arguments": {}}' in text


def test_without_a_tool_the_one_is_called_that_repeats_its_text() -> None:
    text = said(script_of("calls-once", bundle()).answer(prompt(QUESTION), 0, 0))
    assert '"name": "echo"' in text


@pytest.mark.parametrize("spec", ["calls-once:", "calls-once:x [1]", "calls-once:x {"])
def test_what_is_no_call_is_refused(spec: str) -> None:
    with pytest.raises(ValueError, match="calls-once"):
        script_of(spec, bundle())
