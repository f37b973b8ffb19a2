"""Where a text ends, on examples one can check by eye."""

import pytest

from smg_node.tokens.decoding.stop_strings import StopMachine


def run(strings: list[str], *pieces: str, keep: bool = False) -> tuple[list[str], str | None, str]:
    """Return what each piece let out, what matched, and what was held at the end."""
    machine = StopMachine(strings, keep=keep)
    said = []
    for piece in pieces:
        text, matched = machine.feed(piece)
        said.append(text)
        if matched is not None:
            return said, matched, ""
    return said, None, machine.finish()


def test_a_stop_string_ends_the_text_where_it_starts() -> None:
    assert run(["STOP"], "hello STOP and more") == (["hello "], "STOP", "")


def test_a_kept_stop_string_is_the_last_of_the_text() -> None:
    assert run(["STOP"], "hello ST", "OP and more", keep=True) == (["hello ", "STOP"], "STOP", "")


def test_only_the_possible_beginning_is_held() -> None:
    assert run(["\n\nUser:"], "line\n", "\nUs", "ually") == (["line", "", "\n\nUsually"], None, "")


def test_what_is_held_leaves_at_the_end() -> None:
    assert run(["STOP"], "the ST", "O") == (["the ", ""], None, "STO")


def test_a_failed_beginning_may_hide_the_real_one() -> None:
    assert run(["aab"], "aa", "aab") == (["", "aa"], "aab", "")
    assert run(["abab!"], "ababab!x") == (["ab"], "abab!", "")


def test_the_string_that_ends_first_counts() -> None:
    assert run(["bcd", "abcde"], "abcde") == (["a"], "bcd", "")
    assert run(["ab", "abc"], "xabc") == (["x"], "ab", "")


def test_of_strings_that_end_together_the_longest_counts() -> None:
    assert run(["c", "bc", "abc"], "xabc") == (["x"], "abc", "")
    assert run(["abc", "bc", "c"], "xbc") == (["x"], "bc", "")


def test_a_shorter_string_inside_a_failing_longer_one_is_found() -> None:
    assert run(["abcx", "bc"], "zab", "c") == (["z", "a"], "bc", "")


def test_overlapping_beginnings_hold_the_longest() -> None:
    assert run(["<tool_call>", "<tool_calls>"], "a<tool_call", "s>") == (
        ["a", ""],
        "<tool_calls>",
        "",
    )
    assert run(["ab", "bcd"], "xabx") == (["x"], "ab", "")


def test_characters_of_many_bytes_and_classes_are_plain_characters() -> None:
    assert run(["。終", "]", "^-\\"], "一。", "二。終三") == (["一", "。二"], "。終", "")
    assert run(["]"], "a]b") == (["a"], "]", "")
    assert run(["^-\\", "-"], "a^", "b") == (["a", "^b"], None, "")


def test_without_strings_everything_passes() -> None:
    assert run([], "anything", "") == (["anything", ""], None, "")


def test_nothing_may_be_fed_after_the_end() -> None:
    machine = StopMachine(["x"], keep=False)
    machine.feed("x")
    with pytest.raises(AssertionError):
        machine.feed("y")


def test_the_same_string_twice_and_many_strings_at_once() -> None:
    strings = [f"<{number}>" for number in range(16)] * 2
    assert run(strings, "a <1", "5", "> b") == (["a ", "", ""], "<15>", "")


def test_a_long_text_is_read_once() -> None:
    """A quadratic machine would take minutes for this; no clock is needed to notice."""
    machine = StopMachine(["a" * 200 + "b"], keep=False)
    said = sum(len(machine.feed("a" * 1000)[0]) for _ in range(1000))
    assert said == 1_000_000 - 200
    assert machine.finish() == "a" * 200
