"""Where an answer begins, what is odd about one, and where its limits are."""

import pytest

from smg_node.core.generation.pieces import Arguments, Call, Piece, Reasoning, Text
from smg_node.parsers.reading.answer_grammar import PLAIN, AnswerFormat
from smg_node.parsers.reading.format import FormatRequest, Start, ToolFormat, start_of, varied
from smg_node.parsers.reading.scanner import Scanner
from smg_node.parsers.reading.text_reader import CALLS_MAX, RESCAN_MAX, Machine, Reader
from smg_node.parsers.selection.chosen_formats import Chosen
from smg_node.parsers.selection.model_formats import Printing
from smg_node.parsers.selection.registry import known_thoughts, known_tools
from support.answers.parser_cases import Case, case_of, joined, pieces_of

OPENERS = ("<think>",)
CLOSERS = ("</think>",)
CALL = '<tool_call>{"name": "list_rooms"}</tool_call>'


def notes_of(case: Case) -> dict[str, int]:
    scanner = case.scanner()
    for character in case.text:
        scanner.feed(character)
    scanner.finish()
    return scanner.reader.notes


# ── Where it begins ──────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("tail", "start"),
    [
        ("", "undecided"),
        ("<|im_start|>assistant\n", "undecided"),
        ("<think>", "inside"),
        ("<think>\n\n  ", "inside"),
        ("<think>\n\n</think>\n\n", "content"),
        ("<｜Assistant｜></think>", "content"),
        ("Why <think>?<|im_start|>assistant\n", "undecided"),
        ("<think>a</think>b<|im_start|>assistant\n", "undecided"),
        ("/no_think<|im_end|>\n<|im_start|>assistant\n", "undecided"),
    ],
)
def test_an_answer_begins_where_the_prompt_ends(tail: str, start: Start) -> None:
    assert start_of(tail, OPENERS, CLOSERS) == start


@pytest.mark.parametrize(
    ("tail", "start"),
    [
        ("", "undecided"),
        ("<think>", "inside"),
        ("<think>So far", "inside"),
        ("<think>a</think>b", "content"),
        ("<think>a</think>", "content"),
        ("<think>a</think>b<think>c", "inside"),
        ("So far", "content"),
    ],
)
def test_a_message_goes_on_where_it_was_left(tail: str, start: Start) -> None:
    assert start_of(tail, OPENERS, CLOSERS, continued=True) == start


@pytest.mark.parametrize(
    ("tail", "start"), [("", "inside"), ("Here:\n", "inside"), ("</think>\n", "content")]
)
def test_a_family_may_always_begin_alike_but_a_closed_prompt_is_closed(
    tail: str, start: Start
) -> None:
    assert start_of(tail, OPENERS, CLOSERS, fixed="inside") == start


def test_a_model_without_thoughts_is_undecided_and_that_changes_nothing() -> None:
    assert start_of("<think>", (), ()) == "undecided"
    assert pieces_of(case_of({}, "<think>a</think>b"), ["<think>a</think>b"]) == [
        Text("<think>a</think>b")
    ]


@pytest.mark.parametrize(
    ("name", "tail", "continued", "start"),
    [
        ("think", "<think>", False, "inside"),
        ("think", "<think>So far", False, "undecided"),
        ("think", "<think>So far", True, "inside"),
        ("ernie45", "", False, "inside"),
        ("ernie45", "<think></think>", False, "content"),
        ("apriel", "a [BEGIN FINAL RESPONSE] b", True, "content"),
        ("hy_v3", "<think:opensource>", False, "inside"),
        ("gemma4", "<|channel>thought\n", False, "inside"),
        ("gemma4", "<|channel>thought\n<channel|>", False, "content"),
        ("plain", "<think>", False, "undecided"),
    ],
)
def test_a_model_s_answer_begins_where_its_format_says(
    name: str, tail: str, *, continued: bool, start: Start
) -> None:
    assert Printing(Chosen(name)).start(tail, continued=continued) == start


# ── What is odd ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("given", "text", "notes"),
    [
        ({"thoughts": "think"}, "a</think>b", {"reasoning_start_missed": 1}),
        ({"thoughts": "think"}, "</think>b", {}),
        ({"thoughts": "think"}, "<think>a</think></think>b", {}),
        ({"thoughts": "think"}, "a", {}),
        ({"thoughts": "think+implicit", "tools": "hermes"}, f"<think>a{CALL}</think>b", {}),
        ({"tools": "hermes"}, "<tool_call>a<tool_call>b", {"tool_markup_unparsed": 2}),
        ({"tools": "hermes"}, CALL, {}),
        ({"tools": "pythonic"}, "[1] see", {}),
    ],
)
def test_what_is_odd_about_an_answer_is_counted(
    given: dict[str, str], text: str, notes: dict[str, int]
) -> None:
    assert notes_of(case_of(given, text)) == notes


# ── Limits ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("tools", "text"),
    [
        ("hermes", CALL * (CALLS_MAX + 2)),
        ("pythonic", f"[{', '.join(['list_rooms()'] * (CALLS_MAX + 2))}]"),
        ("sarashina", "<|tool_calls|>[" + ", ".join(["{'name': 'f'}"] * (CALLS_MAX + 2)) + "]"),
        ("gemma4", "<|tool_call>call:f{}<tool_call|>" * (CALLS_MAX + 2)),
    ],
)
def test_an_answer_has_so_many_calls_and_what_looks_like_more_is_text(
    tools: str, text: str
) -> None:
    case = case_of({"tools": tools}, text)
    pieces = pieces_of(case, [text])
    assert sum(isinstance(piece, Call) for piece in pieces) == CALLS_MAX
    assert isinstance(pieces[-1], Text)


def far(reader: Reader, _asked: FormatRequest, _opener: str) -> Machine[bool]:
    """Read up to a semicolon, and find that it is no call."""
    while (yield from reader.peek()) not in (";", ""):
        reader.at += 1
    return False


@pytest.mark.parametrize(("size", "calls"), [(RESCAN_MAX // 2, 1), (RESCAN_MAX * 2, 0)])
def test_what_began_nothing_is_looked_through_again_but_not_if_it_is_long(
    size: int, calls: int
) -> None:
    hermes = known_tools().get("hermes")
    text = f"<far>{'x' * size}{CALL};"
    pieces = scan(AnswerFormat(PLAIN, [ToolFormat("far", far, openers=("<far>",)), hermes]), text)
    assert sum(isinstance(piece, Call) for piece in pieces) == calls
    assert isinstance(pieces[0], Text)
    assert pieces[0].text.startswith(f"<far>{'x' * size}")


@pytest.mark.parametrize("size", [10, RESCAN_MAX * 2])
def test_a_thought_goes_on_behind_what_looked_like_a_call(size: int) -> None:
    thought = varied(known_thoughts().get("think"), {"implicit"})
    text = f"<think>a<far>{'x' * size};b</think>c"
    form = AnswerFormat(thought, [ToolFormat("far", far, openers=("<far>",))])
    assert scan(form, text) == [Reasoning(f"a<far>{'x' * size};b"), Text("c")]


# ── How formats are put together ─────────────────────────────────────────────


def never(_reader: Reader, _asked: FormatRequest, _opener: str) -> Machine[bool]:
    """Read nothing."""
    yield from ()
    return False


def scan(form: AnswerFormat, text: str) -> list[Piece]:
    scanner = Scanner(
        form,
        asked=FormatRequest(),
        start="undecided",
        new_id=lambda name, ordinal: f"{name}-{ordinal}",
    )
    return joined([*scanner.feed(text), *scanner.finish()])


def test_of_two_formats_with_one_opener_the_first_has_it() -> None:
    hermes = known_tools().get("hermes")
    other = ToolFormat("other", never, openers=hermes.openers)
    assert scan(AnswerFormat(PLAIN, [hermes, other]), CALL) == [
        Call("list_rooms", "list_rooms-0"),
        Arguments("{}"),
    ]
    assert scan(AnswerFormat(PLAIN, [other, hermes]), CALL) == [
        Text(CALL.removesuffix("</tool_call>"))
    ]


def test_a_mark_of_one_format_that_is_noise_in_another_opens() -> None:
    hermes = known_tools().get("hermes")
    other = ToolFormat("other", never, noise=hermes.openers)
    assert scan(AnswerFormat(PLAIN, [other, hermes]), CALL)[0] == Call("list_rooms", "list_rooms-0")


def test_what_may_only_begin_an_answer_does_not_begin_one_that_is_none() -> None:
    form = AnswerFormat(PLAIN, [ToolFormat("start", never, starts=("{", "[["))])
    for text in ("{}", " {", "{[[", "[[", "[", ""):
        assert scan(form, text) == ([Text(text)] if text else [])


def test_options_vary_a_thought_and_nobody_else_s_are_taken() -> None:
    think = known_thoughts().get("think")
    both = varied(think, {"implicit", "line", "trim"})
    assert (both.implicit, both.trim, both.interleaved) == ("line", True, False)
    assert varied(think, {"interleaved"}).implicit == "no"
    assert varied(think, ()) == think
    assert varied(think, {":v2", ":a"}).openers == ("<think>", "<think:a>", "<think:v2>")
    with pytest.raises(AssertionError, match="often"):
        varied(think, {"often"})
