"""Items to turns: thoughts, calls and outputs in every order, and what no prompt shows."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.cooperative_steps import whole
from smg_node.core.errors import SmgError
from smg_node.core.generation.opaque import Opaque
from smg_node.core.generation.request import (
    ChatPrompt,
    MediaPart,
    TextPart,
    ToolCall,
    Turn,
    TurnBlock,
)
from smg_node.dialects.chat.dialect import ChatDialect
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.responses.items.item_document import item_of
from smg_node.dialects.responses.items.item_types import ITEM_REFERENCE, KINDS
from smg_node.dialects.responses.request.generate_request import generate_request
from smg_node.dialects.responses.request.items_to_turns import sealed, turns_of
from smg_node.dialects.responses.request.response_request import ReasoningContext
from support.answers.responses import AUDIO, FILE, IMAGE, SAMPLES, ask_of, items_from, json_values

Row = dict[str, Any]
PHASE = Opaque("openai", "phase", "commentary")


def user(text: str = "u") -> Row:
    return {"role": "user", "content": text}


def said(text: str = "a", **more: Any) -> Row:
    return {"role": "assistant", "content": text, **more}


def thought(text: str = "t") -> Row:
    return {"type": "reasoning", "content": [{"type": "reasoning_text", "text": text}]}


def call(call_id: str = "c") -> Row:
    return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": '{"x":1}'}


def output(call_id: str = "c", what: Any = "1") -> Row:
    return {"type": "function_call_output", "call_id": call_id, "output": what}


def turns(rows: Sequence[Any], reasoning: ReasoningContext = "all_turns", **more: Any) -> Any:
    return list(turns_of(items_from(rows), reasoning=reasoning, **more))


def called(call_id: str = "c") -> ToolCall:
    return ToolCall(call_id, "f", '{"x":1}')


U, A = Turn("user", "u"), Turn("assistant", "a")


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], []),
        ([user(), said(), user()], [U, A, U]),
        ([user(), user()], [U, U]),
        ([said(), said("b")], [A, Turn("assistant", "b")]),
        ([thought(), said()], [Turn("assistant", "a", reasoning="t")]),
        ([thought(), thought("s"), said()], [Turn("assistant", "a", reasoning="t\ns")]),
        ([said(), thought(), said("b")], [A, Turn("assistant", "b", reasoning="t")]),
        (
            [thought(), said(), call(), output()],
            [
                Turn("assistant", "a", reasoning="t", calls=(called(),)),
                Turn("tool", "1", answers_call="c"),
            ],
        ),
        (
            [call(), call("d"), output("d"), output()],
            [
                Turn("assistant", None, calls=(called(), called("d"))),
                Turn("tool", "1", answers_call="d"),
                Turn("tool", "1", answers_call="c"),
            ],
        ),
        (
            # Nothing may come between a call and its output, whatever was said after it.
            [thought(), call(), thought("s"), call("d"), said(), output(), output("d"), said("b")],
            [
                Turn("assistant", "a", reasoning="t\ns", calls=(called(), called("d"))),
                Turn("tool", "1", answers_call="c"),
                Turn("tool", "1", answers_call="d"),
                Turn("assistant", "b"),
            ],
        ),
        (
            [said(), call(), said("b"), output()],
            [
                Turn("assistant", "a\nb", calls=(called(),)),
                Turn("tool", "1", answers_call="c"),
            ],
        ),
        ([user(), thought()], [U]),
        ([thought(), user()], [U]),
        (
            [said("b", phase="commentary")],
            [
                Turn(
                    "assistant",
                    "b",
                    extra={"phase": "commentary"},
                    blocks=(TurnBlock("text", "b", opaque=(PHASE,)),),
                )
            ],
        ),
        (
            [{"role": "developer", "content": "d"}, {"role": "system", "content": "s"}],
            [Turn("developer", "d"), Turn("system", "s")],
        ),
        ([{"role": "assistant", "content": []}], [Turn("assistant", "")]),
        (
            [{"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}],
            [Turn("assistant", "no")],
        ),
    ],
)
def test_items_are_joined_to_turns(rows: Any, expected: Any) -> None:
    assert turns(rows) == expected


def test_thoughts_of_earlier_turns_are_shown_only_where_all_are_wanted() -> None:
    rows = [user(), thought("old"), said(), user("v"), thought("new"), call(), output()]
    assert [turn.reasoning for turn in turns(rows, "current_turn")] == [None] * 3 + ["new", None]
    assert [turn.reasoning for turn in turns(rows)] == [None, "old", None, "new", None]
    assert [turn.reasoning for turn in turns([thought(), said()], "current_turn")] == ["t"]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(["user", "said", "thought", "call", "output", "system"]), max_size=9),
    st.sampled_from(["current_turn", "all_turns"]),
)
def test_no_text_call_or_output_is_lost_and_outputs_follow_their_calls(
    plan: list[str], reasoning: ReasoningContext
) -> None:
    rows: list[Row] = []
    calls: list[str] = []
    answered: list[str] = []
    for index, step in enumerate(plan):
        match step:
            case "user":
                rows.append(user(f"u{index}"))
            case "said":
                rows.append(said(f"a{index}"))
            case "thought":
                rows.append(thought(f"t{index}"))
            case "call":
                calls.append(f"{index}")
                rows.append(call(f"{index}"))
            case "output" if len(answered) < len(calls):
                answered.append(calls[len(answered)])
                rows.append(output(answered[-1]))
            case "system":
                rows.append({"role": "system", "content": f"s{index}"})
            case _:
                pass
    made = turns(rows, reasoning)
    assert [c.call_id for turn in made for c in turn.calls] == calls
    assert [turn.answers_call for turn in made if turn.role == "tool"] == answered
    text = "\n".join(turn.content or "" for turn in made if turn.role != "tool")
    spoken = [row["content"] for row in rows if "role" in row]
    # Text of one turn stands together, so it may have moved before calls, but never before other text.
    assert text.split() == spoken
    thoughts = "\n".join(turn.reasoning or "" for turn in made).split()
    known = [row["content"][0]["text"] for row in rows if row.get("type") == "reasoning"]
    assert [t for t in known if t in thoughts] == thoughts


@pytest.mark.parametrize("order", list(product((0, 1), repeat=3)))
def test_parts_are_kept_in_order(order: tuple[int, ...]) -> None:
    parts = [[{"type": "input_text", "text": "x"}, IMAGE][which] for which in order]
    (turn,) = turns([user(), {"role": "user", "content": parts}])[1:]
    assert turn.content == tuple(
        MediaPart("image", IMAGE["image_url"], f"input[1].content[{place}]")
        if which
        else TextPart("x")
        for place, which in enumerate(order)
    )


@pytest.mark.parametrize(
    ("told", "detail"),
    [("low", "low"), ("high", "high"), ("original", "original"), ("auto", "")],
)
def test_a_picture_keeps_its_detail_also_in_an_output(told: str, detail: Any) -> None:
    part = {"type": "input_image", "image_url": "u", "detail": told}
    rows = [{"role": "user", "content": [part]}, call(), output("c", [part])]
    asked, _, result = turns(rows)
    assert asked.content == (MediaPart("image", "u", "input[0].content[0]", detail),)
    assert result.content == (MediaPart("image", "u", "input[2].output[0]", detail),)


def test_media_know_where_they_stand() -> None:
    rows = [{"role": "user", "content": [FILE, AUDIO, {"type": "input_file", "file_url": "x:y"}]}]
    assert turns(rows) == [
        Turn(
            "user",
            (
                MediaPart("file", FILE["file_data"], "input[0].content[0]", name="a.txt"),
                MediaPart("audio", "data:audio/wav;base64,AA==", "input[0].content[1]"),
                MediaPart("file", "x:y", "input[0].content[2]"),
            ),
        )
    ]
    history = turns(rows, new_from=1)[0]
    assert history.content[0].where == "previous_response_id.content[0]"


def test_an_output_of_parts_keeps_them() -> None:
    parts = [{"type": "input_text", "text": "x"}, IMAGE]
    (turn,) = turns([call(), output("c", parts)])[1:]
    assert turn.content == (
        TextPart("x"),
        MediaPart("image", IMAGE["image_url"], "input[1].output[1]"),
    )


@pytest.mark.parametrize(
    ("kind", "name", "arguments", "answer"),
    [
        ("custom_tool_call", "g", '{"input":"x"}', "see"),
        ("local_shell_call", "local_shell", '{"type":"exec","command":["ls"],"env":{}}', "a"),
        (
            "shell_call",
            "shell",
            '{"commands":["ls"]}',
            '[{"stdout":"a","stderr":"","outcome":{"type":"exit","exit_code":0}}]',
        ),
        ("apply_patch_call", "apply_patch", '{"type":"delete_file","path":"a"}', "done"),
    ],
)
def test_calls_of_other_tools_are_rendered_as_functions(
    kind: str, name: str, arguments: str, answer: str
) -> None:
    rows = [{"type": t, **SAMPLES[t]} for t in (kind, f"{kind}_output")]
    (turn, result) = turns(rows)
    (made,) = turn.calls
    assert (made.name, made.arguments, made.call_id) == (name, arguments, result.answers_call)
    assert result.content == answer


def test_a_screenshot_is_a_picture() -> None:
    rows = [{"type": t, **SAMPLES[t]} for t in ("computer_call", "computer_call_output")]
    (turn, result) = turns(rows)
    assert turn.calls == (ToolCall("c3", "computer", '{"type":"wait"}'),)
    assert result.content == (MediaPart("image", "data:,", "input[1].output[0]"),)


# ── What was sealed ──────────────────────────────────────────────────────────


def test_a_compaction_is_rendered_from_what_it_was_opened_to() -> None:
    rows = [{"type": "compaction", "encrypted_content": "blob"}, user()]
    assert whole(sealed(items_from(rows))) == ("blob",)
    assert turns(rows, opened={"blob": "so far"}) == [Turn("developer", "so far"), U]


def test_a_thought_is_opened_where_its_text_is_not_given() -> None:
    secret = {"type": "reasoning", "encrypted_content": "blob"}
    (turn,) = turns([secret, said()], opened={"blob": "t"})
    assert turn.reasoning == "t"
    (turn,) = turns([{**secret, **thought()}, said()], opened={})
    assert turn.reasoning == "t"
    assert turns([secret, user()], "current_turn") == [U]


@pytest.mark.parametrize("kind", ["compaction", "reasoning"])
def test_what_cannot_be_opened_is_refused_at_its_place(kind: str) -> None:
    rows = [user(), {"type": kind, "encrypted_content": "blob"}]
    with pytest.raises(SmgError) as caught:
        turns(rows)
    assert (caught.value.code, caught.value.where) == (
        "invalid_encrypted_content",
        "input[1].encrypted_content",
    )


# ── The whole wish ───────────────────────────────────────────────────────────


def prompt_of(**parameters: Any) -> ChatPrompt:
    ask = ask_of(**parameters)
    (prompt,) = generate_request(ask, ask.items).prompts
    assert isinstance(prompt, ChatPrompt)
    return prompt


def test_a_talk_gives_the_prompt_that_chat_completions_gives() -> None:
    body = {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "u"},
            {
                "role": "assistant",
                "content": "a",
                "reasoning_content": "t",
                "tool_calls": [
                    {
                        "id": "c",
                        "type": "function",
                        "function": {"name": "f", "arguments": '{"x":1}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c", "content": "1"},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
    }
    (expected,) = ChatDialect(ReaderOptions()).read(body).request.prompts
    assert isinstance(expected, ChatPrompt)
    made = prompt_of(
        instructions="Be brief.",
        input=[user(), thought(), said(), call(), output()],
        tools=[{"type": "function", "name": "f", "parameters": {}}],
    )
    assert (made.turns, made.tools, made.kwargs) == (expected.turns, expected.tools, {})
    assert made.where == "input"


def test_history_comes_first_and_its_instructions_do_not() -> None:
    ask = ask_of(input="v", instructions="Now.")
    history = items_from([user(), said()])
    (prompt,) = generate_request(ask, [*history, *ask.items]).prompts
    assert isinstance(prompt, ChatPrompt)
    assert prompt.turns == (Turn("system", "Now."), U, A, Turn("user", "v"))


def test_what_no_prompt_shows_is_named() -> None:
    shown = {"message", "reasoning", "compaction", "additional_tools"} | {
        t for t in SAMPLES if t.partition("_")[0] in ("function", "custom", "computer", "local")
    }
    shown |= {t for t in SAMPLES if t.startswith(("shell", "apply"))}
    # Searches and code are shown with what came of them, which these do not say.
    shown |= {"mcp_call", "tool_search_call", "tool_search_output"}
    rows = [{"type": kind, **SAMPLES[kind]} for kind in sorted(SAMPLES) if kind not in shown]
    assert len(rows) == 11
    ask = ask_of(input=[user(), *rows])
    wish = generate_request(ask, [*items_from(rows), *ask.items])
    assert wish.ignored == tuple(f"input[{place}]" for place in range(1, 12))
    (prompt,) = wish.prompts
    assert isinstance(prompt, ChatPrompt)
    assert prompt.turns == (U,)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {"type": st.sampled_from(sorted(KINDS.keys() - {ITEM_REFERENCE}))},
            optional={
                key: json_values
                | st.lists(st.dictionaries(st.sampled_from(["type", "text"]), json_values))
                for key in ("content", "output", "call_id", "name", "arguments", "action", "phase")
            }
            | {"role": st.sampled_from(["user", "assistant", "tool", ""])},
        ),
        max_size=4,
    )
)
def test_whatever_is_stored_becomes_turns(rows: list[Row]) -> None:
    items = [item_of(msgspec.json.encode(row)) for row in rows]
    opened = {"": ""}
    for turn in turns_of(items, reasoning="all_turns", opened=opened):
        assert turn.role in ("user", "assistant", "tool", "developer")
