"""Damaged answers find what is wrong with a parser, make it small, and come again from the same seed."""

import re
from collections.abc import Iterator, Sequence
from random import Random

import pytest
from typer.testing import CliRunner

from smg_chaos.opinion import fuzzing, laws
from smg_chaos.opinion.fuzz_cli import app, named
from smg_chaos.opinion.fuzzing import ROUND, Finding, Task, play, run, smallest, tasks
from smg_chaos.opinion.laws import Breach, Losses, accounted, breach, read, shrunk
from smg_chaos.opinion.mutating import SIZE_MAX, mutated
from smg_chaos.opinion.printed import CALLS, JOINT
from smg_chaos.opinion.spellings import SPELLINGS
from smg_chaos.opinion.subjects import Setting, subjects
from smg_node.core.generation.pieces import Arguments, Call, Piece, Text
from smg_node.parsers.reading.parser import Parser
from smg_node.parsers.selection.registry import known_joint, known_thoughts, known_tools


class Broken:
    """Says all text, but for what is wrong with it: see each answer of `_pieces`."""

    def __init__(self) -> None:
        self._said = ""

    def feed(self, text: str) -> Sequence[Piece]:
        """Take more text."""
        self._said += text
        return self._pieces(text)

    def finish(self) -> Sequence[Piece]:
        """Return a call without arguments, where one was asked for."""
        return (Call("f", "1"),) if "!call" in self._said else ()

    def _pieces(self, text: str) -> Sequence[Piece]:
        if "!raise" in text:
            raise ValueError("raised")
        if "!endless" in text:
            while True:
                pass
        if "!whole" in text:
            return (Text(text.replace("!whole", "")),)
        if "!empty" in text:
            return (Text(""),)
        if "!lost" in self._said:
            return ()
        return (Text(text),) if text else ()


def law_of(text: str) -> str:
    found = breach(text, Broken, Losses())
    return "" if found is None else found.law


def test_each_law_is_seen_to_be_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laws, "SECONDS_MAX", 0.05)
    assert law_of("all is well") == ""
    assert law_of("") == ""
    assert law_of("x !raise y") == "raises ValueError"
    assert law_of("x !endless y") == "endless"
    assert law_of("x !whole y") == "cutting"
    assert law_of("!empty") == "raises AssertionError"
    assert law_of("!lost") in ("lost or left", "cutting")
    assert law_of("!call") == "a call without arguments"


def test_what_a_format_does_not_drop_must_not_be_missing() -> None:
    class Dropping(Broken):
        def _pieces(self, text: str) -> Sequence[Piece]:
            return (Text(text.replace("#", "")),) if text.replace("#", "") else ()

    assert breach("a#b", Dropping, Losses(("#",))) is None
    found = breach("a#b", Dropping, Losses())
    assert found is not None
    assert found.law == "lost or left"
    left = breach("a%b", Broken, Losses(("%",)))
    assert left is not None
    assert left.law == "lost or left"


def test_what_may_be_missing_may_be_missing_anywhere_but_nothing_else() -> None:
    gone = [re.compile("<b>"), re.compile(r"\s")]
    assert accounted("a <b>c<b> d", "acd", gone)
    assert accounted("a <b>c<b> d", "a <b>c<b> d", gone)
    assert not accounted("a <b>c<b> d", "ac", gone)
    assert not accounted("a <b>c", "ca", gone)
    assert not accounted("a", "aa", gone)
    assert accounted("", "", gone)


def test_a_text_that_fails_is_made_as_small_as_it_gets() -> None:
    def fails(text: str) -> bool:
        return "<a>" in text and text.count("é") >= 2

    long = "x" * 300 + "<a>" + "yé" * 40 + "\n" * 99
    assert shrunk(long, fails) == "<a>éé"
    assert fails(shrunk(long, fails, tries=20))
    assert shrunk("<a>éé", fails) == "<a>éé"


def test_a_wrapper_around_no_calls_may_be_missing_and_only_there_tokens_may_be_left() -> None:
    losses = Setting(tools="phi4").losses
    for text in ("functools[]<|/tool_call|>", "a<|tool_call|> [ ]\n<|/tool_call|>b"):
        assert breach(text, Setting(tools="phi4").parser, losses) is None
    assert breach("a<|tool_call|>[]", Broken, losses) is None
    found = breach("a<|/tool_call|>", Broken, losses)
    assert found is not None
    assert found.law == "lost or left"


class Settled(Setting):
    """A setting whose parser is the broken one."""

    __slots__ = ()

    def parser(self) -> Parser:
        """Return a broken parser."""
        return Broken()


def test_a_broken_parser_is_caught_and_its_text_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = subjects()["tools:hermes"]

    class Subject(type(subject)):  # type: ignore[misc]  # the class of a value
        __slots__ = ()

        def setting(self, rng: Random) -> Setting:
            return Settled(tools="hermes")

    broken = Subject("tools", "hermes", (*subject.marks, "!raise"))
    monkeypatch.setattr(fuzzing, "subjects", lambda: {"tools:hermes": broken})
    tally = play(Task(1, "tools:hermes", 0, 100))
    assert tally.broken["tools:hermes: raises ValueError"] > 0
    (found, *_) = [one for one in tally.findings if one.breach.law == "raises ValueError"]
    assert found.text == "!raise"
    shown = "\n".join(found.lines())
    assert "smg-chaos parse-fuzz --seed 1 --format tools:hermes --mutations 100" in shown
    assert "'!raise'" in shown
    assert "_pieces" in shown


def test_a_text_stays_with_the_law_it_breaks() -> None:
    text = "x" * 40 + "!raise" + "y" * 40 + "!call"
    assert smallest(text, Settled(), Breach("raises ValueError", ""))[0] == "!raise"
    assert smallest(text, Settled(), Breach("a call without arguments", ""))[0] == "!call"


def test_pieces_of_one_kind_are_joined_and_calls_are_not() -> None:
    class Talking(Broken):
        def _pieces(self, text: str) -> Sequence[Piece]:
            return (Call("f", "1"), Arguments(text), Arguments("}"), Call("f", "1"), Arguments("{"))

    assert read(Talking(), ["{"]) == [
        *(Call("f", "1"), Arguments("{}")),
        *(Call("f", "1"), Arguments("{")),
    ]


def test_every_known_format_is_thrown_at_and_its_answers_are_understood() -> None:
    found = subjects()
    for kind, names in (
        ("thoughts", known_thoughts()),
        ("tools", known_tools()),
        ("joint", known_joint()),
    ):
        assert [one.name for one in found.values() if one.kind == kind] == list(names)
    assert set(known_tools()) <= {each.ours for each in SPELLINGS} | set(CALLS)
    assert set(known_joint()) == set(JOINT)


def _whole(answers: Sequence[str], setting: Setting) -> Iterator[list[Piece]]:
    for answer in answers:
        yield read(setting.parser(), [answer])


@pytest.mark.parametrize("name", sorted(CALLS))
def test_answers_of_formats_of_calls_have_calls(name: str) -> None:
    forced = name in ("json_array", "bare_arguments")
    setting = Setting(tools="hermes", expect=name) if forced else Setting(tools=name)  # type: ignore[arg-type]  # one of both
    for pieces in _whole(CALLS[name], setting):
        assert any(isinstance(piece, Call) for piece in pieces), pieces


@pytest.mark.parametrize("name", sorted(JOINT))
def test_answers_of_joint_formats_have_calls(name: str) -> None:
    said = [piece for pieces in _whole(JOINT[name], Setting(joint=name)) for piece in pieces]
    assert any(isinstance(piece, Call) for piece in said), said


def test_damage_is_done_by_the_seed_alone_and_stays_short() -> None:
    marks, others = ("<a>", "</a>"), ("one", "two" * 400)
    made = [mutated("<a>text</a>" * 20, Random(seed), marks, others) for seed in range(200)]
    again = [mutated("<a>text</a>" * 20, Random(seed), marks, others) for seed in range(200)]
    assert made == again
    assert len(set(made)) > 150
    assert max(map(len, made)) <= SIZE_MAX
    assert all(isinstance(mutated("", Random(seed), marks, ("",)), str) for seed in range(200))


def test_what_no_encoding_can_say_is_a_breach() -> None:
    class Halving(Broken):
        def _pieces(self, text: str) -> Sequence[Piece]:
            return (Text(text.replace("#", "\ud83d")),) if text else ()

    assert breach("ab", Halving, Losses()) is None
    found = breach("a#", Halving, Losses())
    assert found is not None
    assert found.law == "no UTF-8"


def test_a_setting_reads_like_the_head_of_a_transcript() -> None:
    setting = Setting("think", "hermes", options=("trim",), tail="<think>\n", calls=False)
    assert str(setting) == (
        'parse thoughts=think+trim tools=hermes controls="<|im_end|> <|user|>"'
        r' tail="<think>\n" choice=none'
    )
    assert str(Setting(joint="muse")) == "parse joint=muse"
    assert str(Setting(tools="glm", expect="json_array")).endswith("expect=json_array")


def test_rounds_go_through_all_formats_until_there_are_enough() -> None:
    todo = list(tasks(3, 2 * ROUND + 7, ["a", "b"]))
    assert todo == [Task(3, "a", 0, ROUND), Task(3, "b", 0, ROUND), Task(3, "a", 1, 7)]


def test_the_same_seed_comes_to_the_same_in_any_number_of_processes() -> None:
    names = ["tools:glm", "joint:muse"]
    seen: list[int] = []
    once = run(
        tasks(5, 60, names),
        jobs=1,
        seconds_max=60,
        progress=lambda total: seen.append(total.mutations),
    )
    twice = run(tasks(5, 60, names), jobs=2, seconds_max=60, progress=lambda _total: None)
    assert seen == [60]
    assert (once.mutations, once.characters, once.with_calls) == (
        twice.mutations,
        twice.characters,
        twice.with_calls,
    )
    assert once.broken == twice.broken


def test_a_limit_of_time_ends_it() -> None:
    total = run(tasks(1, 10**6, ["tools:hermes"]), jobs=1, seconds_max=0, progress=lambda _: None)
    assert total.mutations == ROUND


@pytest.mark.parametrize("name", sorted(subjects()))
def test_no_format_breaks_a_law_in_a_few_mutations(name: str) -> None:
    tally = play(Task(11, name, 1, 40))
    assert not tally.broken, "\n".join(line for one in tally.findings for line in one.lines())


def test_formats_are_named_with_their_kind_or_without() -> None:
    assert named(["hermes"]) == ["tools:hermes"]
    assert named(["granite"]) == ["thoughts:granite", "tools:granite"]
    assert named(["joint:muse", "muse"]) == ["joint:muse"]
    assert named([]) == list(subjects())


def test_the_command_says_its_figures_and_fails_with_a_finding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = ["--mutations", "50", "--jobs", "1", "--format", "tools:hermes"]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.output
    assert "50 damaged answers of 1 formats" in result.output
    assert "0 broke a law" in result.output

    def broken(task: Task) -> fuzzing.Tally:
        tally = fuzzing.Tally(mutations=1)
        tally.broken["tools:hermes: cutting"] = 1
        tally.findings.append(Finding(task, Setting(), "text", Breach("cutting", "a\nb")))
        return tally

    monkeypatch.setattr(fuzzing, "play", broken)
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 1
    assert "'text'" in result.output
    assert "tools:hermes: cutting" in result.output


def test_the_command_knows_its_formats() -> None:
    assert "joint:kimi_k3" in CliRunner().invoke(app, ["--list"]).output.split()
    result = CliRunner().invoke(app, ["--format", "nobody"])
    assert result.exit_code == 2
    assert "--list" in result.output
