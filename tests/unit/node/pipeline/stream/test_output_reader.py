"""What engines are asked for where a parser reads, and where it begins to read."""

from collections.abc import Sequence
from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import BlockEnd, Event, Finish
from smg_node.core.generation.request import (
    ChatPrompt,
    Sampling,
    TextPart,
    TextPrompt,
    TokenIds,
    Tool,
    ToolChoice,
    Turn,
    token_ids,
)
from smg_node.engines.chunk import Chunk
from smg_node.parsers.selection.chosen_formats import Chosen
from smg_node.parsers.selection.model_formats import Printing
from smg_node.pipeline.prompt.request_bounds import stop_ids
from smg_node.pipeline.stream.end_tokens import ends_of
from smg_node.pipeline.stream.output_reader import OutputReader, output_reader
from support.models.bytewise_tokenizer import BytewiseTokenizer

SPECIAL = (
    "<eos>",
    "<|im_start|>",
    "<|channel|>",
    "<|message|>",
    "<|end|>",
    "<|start|>",
    "<|call|>",
)
FIRST = 256
CALL_ID = FIRST + SPECIAL.index("<|call|>")
HERMES = Printing(Chosen("think", "hermes", frozenset({"implicit"})), SPECIAL)
HARMONY = Printing(Chosen("harmony", "harmony"), SPECIAL)
TOOLS = (Tool("find"),)
CALL = '<tool_call>{"name": "find", "arguments": {}}</tool_call>'


class _Detokenizer:
    def __init__(self, *, skip: bool) -> None:
        self._skip = skip

    def feed(self, token_id: int) -> str:
        if token_id < FIRST:
            return chr(token_id)
        return "" if self._skip else SPECIAL[token_id - FIRST]

    alone = None

    def finish(self) -> str:
        return ""


class SpecialTokenizer(BytewiseTokenizer):
    """Bytes, and a few control tokens."""

    special_ids = frozenset(range(FIRST, FIRST + len(SPECIAL)))

    def encode(self, text: str, *, add_special_tokens: bool) -> TokenIds:
        ids: list[int] = []
        while text:
            for at, special in enumerate(SPECIAL):
                if text.startswith(special):
                    ids.append(FIRST + at)
                    text = text[len(special) :]
                    break
            else:
                ids.append(ord(text[0]))
                text = text[1:]
        return token_ids(ids)

    def token_text(self, token_id: int) -> str:
        return chr(token_id) if token_id < FIRST else SPECIAL[token_id - FIRST]

    def detokenizer(
        self,
        *,
        prompt_tail: Sequence[int],
        skip_special_tokens: bool,
        spaces_between_special_tokens: bool,
    ) -> Any:
        return _Detokenizer(skip=skip_special_tokens)


TOKENIZER = SpecialTokenizer()


def heard_by(
    printing: Printing, prompt: Any = None, text: str = "", **sampling: Any
) -> tuple[OutputReader, Sampling]:
    wanted = Sampling(max_tokens=1000, **sampling)
    asked = prompt or ChatPrompt((Turn("user", "Hi"),), tools=TOOLS)
    found = output_reader(
        asked,
        text,
        printing,
        wanted,
        TOKENIZER,
        lambda _name, at: f"call_{at}",
        stops=stop_ids(printing, TOKENIZER),
    )
    return found, wanted


def said(found: OutputReader, sampling: Sampling, text: str) -> list[tuple[str, str]]:
    """Return what an answer says, with its finish at the end."""
    stream = found.stream(
        0, sampling, token_ids([1]), ends_of(sampling, TOKENIZER, (), read=found.ends)
    )
    out: list[Event] = []
    for one in TOKENIZER.encode(text, add_special_tokens=False):
        stream.feed(Chunk(0, (one,)), out)
    stream.feed(Chunk(0, (), finish="stop"), out)
    told = [(event.kind, event.text) for event in out if isinstance(event, BlockEnd)]
    (finish,) = [event for event in out if isinstance(event, Finish)]
    return [*told, ("finish", finish.reason)]


def test_where_a_parser_reads_special_tokens_are_kept_and_the_others_dropped() -> None:
    found, sampling = heard_by(HERMES)
    asked = found.asked(sampling)
    assert sampling.skip_special_tokens
    assert not asked.skip_special_tokens
    assert (asked.keep_stop, asked.stop_token_ids) == (False, ())
    assert said(found, sampling, f"<|im_start|>a{CALL}<eos>") == [
        ("text", "a"),
        ("call", "{}"),
        ("finish", "tool_calls"),
    ]


def test_a_client_that_wants_to_see_special_tokens_sees_those_that_are_no_markers() -> None:
    found, sampling = heard_by(HERMES, skip_special_tokens=False)
    assert said(found, sampling, f"<|im_start|>a{CALL}<eos>")[0] == ("text", "<|im_start|>a")


@pytest.mark.parametrize("prompt", [TextPrompt("Once"), None])
def test_where_nothing_is_read_nothing_changes(prompt: TextPrompt | None) -> None:
    found, sampling = heard_by(HERMES if prompt else Printing(Chosen(), SPECIAL), prompt)
    assert found.asked(sampling) is sampling
    assert said(found, sampling, f"<|im_start|>{CALL}") == [("text", CALL), ("finish", "stop")]


def test_ends_that_a_format_reads_are_asked_for_and_read() -> None:
    found, sampling = heard_by(HARMONY, stop_token_ids=(7,))
    asked = found.asked(sampling)
    assert asked.keep_stop
    assert asked.stop_token_ids == (7, CALL_ID)
    call = "<|channel|>commentary to=functions.find <|constrain|>json<|message|>{}<|call|>more"
    text = f"<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant{call}"
    assert said(found, sampling, text) == [
        ("reasoning", "Hm."),
        ("call", "{}"),
        ("finish", "tool_calls"),
    ]


@pytest.mark.parametrize(
    ("printing", "prompt", "told"),
    [
        (HERMES, None, ()),
        (HARMONY, None, ()),
        (Printing(Chosen("plain", "hermes"), SPECIAL), None, ("a", "b")),
        (Printing(Chosen(), SPECIAL), None, ("a", "b")),
        (HERMES, TextPrompt("Once"), ("a", "b")),
    ],
    ids=["thoughts", "messages", "calls only", "plain", "no chat"],
)
def test_an_engine_that_may_think_is_told_no_stop_strings(
    printing: Printing, prompt: TextPrompt | None, told: tuple[str, ...]
) -> None:
    found, sampling = heard_by(printing, prompt, stop=("a", "b"), stop_token_ids=(7,))
    asked = found.asked(sampling)
    assert asked.stop == told
    assert asked.stop_token_ids[:1] == (7,)


def test_an_engine_is_asked_for_one_token_where_none_is_wanted() -> None:
    prompt = TextPrompt("Once")
    found, _ = heard_by(HERMES, prompt)
    assert found.asked(Sampling(max_tokens=0)).max_tokens == 1
    assert found.asked(Sampling(max_tokens=2)).max_tokens == 2


def test_a_format_that_needs_its_ends_does_not_go_on_behind_them() -> None:
    with pytest.raises(SmgError, match="ignore_eos is not possible with harmony") as caught:
        heard_by(HARMONY, ignore_eos=True)
    assert caught.value.where == "ignore_eos"


@pytest.mark.parametrize(
    ("text", "turn", "first"),
    [
        ("user\nsay <think> twice\nassistant\n", None, ("text", "a<b")),
        ("assistant\n<think>\n", None, ("reasoning", "a<b")),
        ("assistant\n<think>\n\n</think>\n\n", None, ("text", "a<b")),
        ("assistant\n<think>\nSo", "<think>\nSo", ("reasoning", "a<b")),
        ("assistant\n<think>x</think>So", (TextPart("<think>x</think>So"),), ("text", "a<b")),
        ("assistant\n<think>\n", "", ("reasoning", "a<b")),
    ],
)
def test_an_answer_begins_where_the_prompt_says(text: str, turn: Any, first: Any) -> None:
    turns = (Turn("user", "Hi"),) if turn is None else (Turn("assistant", turn),)
    prompt = ChatPrompt(turns, continue_final_message=turn is not None)
    found, sampling = heard_by(HERMES, prompt, text)
    assert said(found, sampling, "a<b")[0] == first


@pytest.mark.parametrize(
    "prompt",
    [
        ChatPrompt((Turn("user", "Hi"),)),
        ChatPrompt((Turn("user", "Hi"),), tools=TOOLS, choice=ToolChoice("none")),
    ],
)
def test_without_tools_to_call_markup_is_text(prompt: ChatPrompt) -> None:
    found, sampling = heard_by(HERMES, prompt)
    assert said(found, sampling, CALL) == [("text", CALL), ("finish", "stop")]


def test_one_call_is_all_where_they_are_not_parallel() -> None:
    prompt = ChatPrompt((Turn("user", "Hi"),), tools=TOOLS, choice=ToolChoice(parallel=False))
    found, sampling = heard_by(HERMES, prompt)
    assert said(found, sampling, CALL * 2) == [("call", "{}"), ("finish", "tool_calls")]
