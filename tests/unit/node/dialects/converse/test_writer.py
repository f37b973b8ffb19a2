"""Bodies for Bedrock: what each wish becomes, what cannot be said, and that the API takes all of them."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.request import (
    Constraint,
    GenerateRequest,
    MediaPart,
    Sampling,
    TextPrompt,
    Thinking,
    Tool,
    ToolChoice,
    Turn,
)
from smg_node.dialects.converse.dialect import converse_provider
from smg_node.dialects.converse.vendor_answer import SCHEMA_TOOL
from smg_node.dialects.provider_dialect import WriterOptions, Written
from support.providers.converse_bodies import (
    BY_TOOL,
    CLAUDE,
    FOUND_OUT,
    GPT,
    NOVA,
    SAID,
    TOOL,
    USER,
    fields,
    messages,
    written,
)
from support.providers.converse_judge import refusal
from support.providers.converse_requests import PNG, requests


def test_a_plain_request_says_nothing_but_its_words() -> None:
    assert written() == Written({"messages": [SAID]})


DRAWN = Sampling(max_tokens=5, temperature=0.5, top_p=0.9, top_k=40, stop=("END",))


def test_what_says_how_it_is_drawn() -> None:
    usual = {"maxTokens": 5, "stopSequences": ["END"], "temperature": 0.5}
    nova = written(sampling=DRAWN)
    assert nova.fields["inferenceConfig"] == {**usual, "topP": 0.9}
    assert nova.fields["additionalModelRequestFields"] == {"inferenceConfig": {"topK": 40}}
    assert nova.ignored == ()
    claude = written(sampling=DRAWN, options=CLAUDE)
    assert claude.fields["inferenceConfig"] == usual
    assert claude.fields["additionalModelRequestFields"] == {"top_k": 40}
    assert claude.fields["additionalModelResponseFieldPaths"] == ["/stop_sequence"]
    assert claude.ignored == ("top_p",)
    assert written(sampling=DRAWN, options=GPT).ignored == ("top_k",)


def test_the_usual_is_said_only_where_it_is_not_the_models_own() -> None:
    ones = Sampling(temperature=1.0, top_p=1.0, top_k=-1)
    assert written(sampling=ones, options=CLAUDE) == Written({"messages": [SAID]})
    assert fields(sampling=ones)["inferenceConfig"] == {"temperature": 1.0, "topP": 1.0}


def test_a_temperature_above_one_is_one() -> None:
    hot = Sampling(temperature=1.8)
    for options in (CLAUDE, NOVA):
        found = written(sampling=hot, options=options)
        assert found.fields["inferenceConfig"] == {"temperature": 1.0}
        assert found.ignored == ("temperature",)


def test_what_only_engines_know_is_named_in_the_clients_words() -> None:
    sampling = Sampling(
        seed=1,
        min_p=0.1,
        logit_bias={5: 1.0},
        stop_token_ids=(7,),
        where={"seed": "generationConfig.seed"},
    )
    found = written(sampling=sampling, kwargs={"x": 1})
    assert found.ignored == (
        "min_p",
        "generationConfig.seed",
        "stop_token_ids",
        "logit_bias",
        "chat_template_kwargs",
    )


@pytest.mark.parametrize(
    ("lacks", "ignored"),
    [
        ("temperature", "temperature"),
        ("inferenceConfig.temperature", "temperature"),
        ("topP", "top_p"),
        ("top_p", "top_p"),
        ("max_tokens", "max_tokens"),
        ("effort", "reasoning_effort"),
    ],
)
def test_what_a_model_refuses_is_left_out_and_named(lacks: str, ignored: str) -> None:
    options = WriterOptions(NOVA.model, "bedrock", lacks=frozenset({lacks, "unheard_of"}))
    wish = Thinking(effort="low")
    usual = written(sampling=DRAWN, thinking=wish).fields
    found = written(sampling=DRAWN, thinking=wish, options=options)
    assert found.ignored == (ignored,)
    kept = {name for part in found.fields.values() if isinstance(part, dict) for name in part}
    said = {name for part in usual.values() if isinstance(part, dict) for name in part}
    assert len(said - kept) == 1


def refused(*turns: Turn, **given: Any) -> SmgError:
    with pytest.raises(SmgError) as raised:
        written(*turns, **given)
    assert raised.value.kind is ErrorKind.INVALID_REQUEST
    return raised.value


UNFORCED = WriterOptions(NOVA.model, "bedrock", lacks=frozenset({"toolConfig.toolChoice.any"}))
UNSTOPPED = WriterOptions(NOVA.model, "bedrock", lacks=frozenset({"stopSequences"}))
AT = "messages[0].content[0]"


@pytest.mark.parametrize(
    ("turns", "given", "where"),
    [
        ((), {"sampling": Sampling(n=2)}, "n"),
        ((), {"sampling": Sampling(logprobs=1)}, "logprobs"),
        ((), {"sampling": Sampling(prompt_logprobs=1)}, "prompt_logprobs"),
        ((), {"sampling": Sampling(adapter="a", where={"adapter": "lora_path"})}, "lora_path"),
        ((), {"sampling": Sampling(constraint=Constraint("regex", "a", "regex"))}, "regex"),
        ((), {"sampling": Sampling(stop=("\n",)), "options": CLAUDE}, "stop"),
        ((), {"sampling": Sampling(stop=("a",)), "options": UNSTOPPED}, "stop"),
        ((), {"template": "x"}, "chat_template"),
        ((), {"documents": ({"a": 1},)}, "documents"),
        ((), {"tools": (Tool("a.b", where="tools[3]"),)}, "tools[3]"),
        ((), {"tools": (Tool(SCHEMA_TOOL, where="tools[3]"),)}, "tools[3]"),
        (
            (),
            {"tools": (TOOL,), "choice": ToolChoice("required"), "options": UNFORCED},
            "tool_choice",
        ),
        ((Turn("user", " "),), {}, "messages"),
        ((Turn("assistant", "x"), USER), {}, "messages"),
        ((USER, Turn("assistant", "x")), {}, "messages"),
        ((Turn("user", (MediaPart("image", "https://a/b.png", AT),)),), {}, AT),
        ((Turn("user", (MediaPart("image", "data:image/png,x", AT),)),), {}, AT),
        ((Turn("user", (MediaPart("image", "data:image/png;base64,", AT),)),), {}, AT),
        ((Turn("user", (MediaPart("image", "data:image/tiff;base64,AA==", AT),)),), {}, AT),
        ((Turn("user", (MediaPart("file", "", AT),)),), {}, AT),
        ((Turn("system", (MediaPart("image", PNG, AT),)), USER), {}, AT),
    ],
)
def test_what_cannot_be_said_is_an_error_at_its_place(turns: Any, given: Any, where: str) -> None:
    assert refused(*turns, **given).where == where


def test_claude_may_be_told_of_a_beginning_of_its_own() -> None:
    found = messages(Turn("assistant", "x"), USER, options=CLAUDE)
    assert found == [{"role": "assistant", "content": [{"text": "x"}]}, SAID]


def test_only_conversations_are_written() -> None:
    request = GenerateRequest("ours", (TextPrompt("x"),), Sampling(), True)
    with pytest.raises(SmgError) as raised:
        converse_provider(NOVA.model).write(request, NOVA)
    assert raised.value.where == "prompt"


def attempt(request: GenerateRequest, options: WriterOptions) -> Written | SmgError:
    try:
        return converse_provider(options.model).write(request, options)
    except SmgError as error:
        return error


@given(requests(), st.sampled_from([CLAUDE, NOVA, GPT, BY_TOOL, FOUND_OUT]))
def test_any_request_is_a_body_that_the_api_takes_or_an_error_at_its_place(
    request: GenerateRequest, options: WriterOptions
) -> None:
    found = attempt(request, options)
    event(type(found).__name__)
    if isinstance(found, SmgError):
        assert (found.kind, bool(found.where)) == (ErrorKind.INVALID_REQUEST, True)
        return
    assert refusal(found.fields) == ""
    roles = [message["role"] for message in found.fields["messages"]]
    assert all(one != other for one, other in pairwise(roles))
