"""Real answers of vendors, recorded by others: our listeners and judges read each of them as the vendor's JSON says.

What is compared are facts: texts, calls, the reason of the end, tokens, each read a second time by code of the tests.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final, get_args

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.dialects.worker_errors import WorkerError
from smg_node.providers.failures.failure_class import FailureClass
from smg_node.providers.vendor_errors import event_failure
from support.recordings.chat_truth import chat_truth
from support.recordings.converse_truth import converse_truth
from support.recordings.gemini_truth import gemini_truth
from support.recordings.heard import BEGIN, as_truth, cuts, heard, judged
from support.recordings.messages_truth import messages_truth
from support.recordings.recorded_answer import Api, RecordedAnswer, answers_of, recorded_answers
from support.recordings.responses_truth import responses_truth
from support.recordings.truth import Tokens, Truth

APIS: Final[tuple[Api, ...]] = get_args(Api)
TRUTHS: Final[dict[Api, Callable[[RecordedAnswer], Truth]]] = {
    "chat": chat_truth,
    "responses": responses_truth,
    "messages": messages_truth,
    "generate_content": gemini_truth,
    "converse": converse_truth,
}
# Vendor: how many good answers of it there are at least.
LEAST: Final = {
    "openai": 1170,
    "anthropic": 550,
    "google": 330,
    "bedrock": 135,
    "azure": 65,
    "vertex": 29,
    "local": 20,
    "groq": 20,
    "huggingface": 14,
    "openrouter": 8,
    "deepseek": 5,
    "mistral": 5,
    "cerebras": 4,
    "heroku": 1,
    "together": 1,
}


def truths(api: Api) -> list[tuple[RecordedAnswer, Truth]]:
    """Return the answers of an API that are none of an error, each with what it says."""
    found = [(answer, TRUTHS[api](answer)) for answer in answers_of(api)]
    return [(answer, truth) for answer, truth in found if not truth.error]


def test_there_are_enough_answers_of_enough_vendors() -> None:
    counts = Counter(answer.vendor for answer in recorded_answers() if answer.good)
    assert {vendor: counts[vendor] for vendor in LEAST if counts[vendor] < LEAST[vendor]} == {}
    assert counts.total() >= 2_350
    for api, (wholes, streams) in {
        "chat": (560, 235),
        "responses": (325, 175),
        "messages": (380, 215),
        "generate_content": (285, 70),
        "converse": (58, 35),
    }.items():
        streamed = Counter(answer.streamed for answer in recorded_answers() if answer.api == api)
        assert streamed[False] >= wholes, api
        assert streamed[True] >= streams, api


@pytest.mark.parametrize("api", APIS)
def test_every_answer_is_read_as_its_vendor_meant_it(api: Api) -> None:
    wrong = []
    for answer, truth in truths(api):
        said = as_truth(heard(answer, [answer.body]))
        if said != with_estimates(truth, said):
            wrong.append((answer.name, truth, said))
    assert wrong == []


def test_the_answers_have_state_of_every_kind() -> None:
    counts = Counter({api: sum(len(truth.state) for _, truth in truths(api)) for api in APIS})
    least = {"messages": 70, "generate_content": 68, "responses": 80, "converse": 9, "chat": 2}
    assert {api: counts[api] for api in APIS if counts[api] < least[api]} == {}


def with_estimates(truth: Truth, said: Truth) -> Truth:
    """Return the truth with what a listener puts in where the vendor says nothing of tokens."""
    told, estimated = truth.tokens, said.tokens
    if told is None:
        assert estimated is not None
        assert estimated.prompt == BEGIN.prompt_tokens
        return Truth(**{**vars(truth), "tokens": estimated})
    if not told.prompt:
        told = Tokens(BEGIN.prompt_tokens, *told[1:])
    return Truth(**{**vars(truth), "tokens": told})


@pytest.mark.parametrize("api", APIS)
def test_a_stream_is_the_same_at_any_cut(api: Api) -> None:
    streams = [answer for answer, _ in truths(api) if answer.streamed]
    assert streams
    wrong = []
    for number, answer in enumerate(streams):
        whole = heard(answer, [answer.body])
        wrong += [
            (answer.name, way)
            for way, pieces in cuts(answer.body, number)
            if heard(answer, pieces) != whole
        ]
    assert wrong == []


@pytest.mark.parametrize("api", APIS)
def test_a_stream_that_was_cut_short_is_not_whole(api: Api) -> None:
    for answer, _ in truths(api):
        if answer.streamed:
            with pytest.raises(SmgError) as raised:
                heard(answer, [answer.body[: len(answer.body) // 3]])
            assert raised.value.kind is ErrorKind.UPSTREAM_FAILED


@pytest.mark.parametrize("api", APIS)
def test_a_judge_finds_the_same_end_and_the_same_cost(api: Api) -> None:
    wrong: list[tuple[object, ...]] = []
    for answer, truth in truths(api):
        if api == "converse" and answer.streamed:
            continue  # Frames never pass to a client as they are.
        judge, tokens = judged(answer), truth.tokens
        if not judge.done or judge.failure is not None:
            wrong.append((answer.name, judge.failure))
        elif tokens is not None:
            used = judge.usage
            assert used is not None
            found = (used.prompt_tokens, used.completion_tokens, used.cached_tokens)
            if found != tokens[:3]:
                wrong.append((answer.name, found, tokens))
    assert wrong == []


def test_an_error_with_a_good_status_is_the_clients() -> None:
    found = Counter[str]()
    for api in APIS:
        for answer in answers_of(api):
            if not TRUTHS[api](answer).error:
                continue
            found[answer.vendor] += 1
            with pytest.raises(WorkerError) as raised:
                heard(answer, [answer.body])
            assert event_failure(raised.value).failure in (
                FailureClass.CALLER,
                FailureClass.CONTENT,
            )
            failure = judged(answer).failure
            assert isinstance(failure, WorkerError)
            assert failure.message == raised.value.message
    assert found == {"azure": 3, "groq": 1}
