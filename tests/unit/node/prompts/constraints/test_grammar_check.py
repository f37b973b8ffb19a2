"""Grammars, in EBNF and in Lark, that some engine takes, and those that none does."""

import contextlib
import json
import time

import pytest

from smg_node.prompts.constraints.grammar_check import NESTING_MAX, GrammarError, check_grammar

GOOD = {
    "one rule": 'root ::= "a"',
    "single quotes": "root ::= 'a'",
    "rules of several lines": 'root ::=\n  "a"\n  | b-c\n\nb-c ::= [0-9]+\n',
    "a group of several lines": 'root ::= ( "a"\n | "b" )\n',
    "signs in literals": 'root ::= ") ::= (" [(\\]*] # x ::= (\n',
    "an empty alternative": 'root ::= "x" | ""',
    "counted repeats": 'root ::= "a"{2,5} [^"\\]]+',
    "any character": "root ::= .",
    "what follows is looked at": 'root ::= "a" (="b")',
    "a set over two lines": "root ::= [a\n]",
    "a dot beside a name": 'root ::= b. | .b.b\nb ::= "x"',
    "a name of two cases": "start: Astart\nA: /a/",
    "a pattern over two lines": "start: /a\n+/",
    "an empty rule": 'root ::= "a" b\nb ::= \nc ::= "x"',
    "a macro": 'root ::= TagDispatch(("t", one), stop_eos=true)\none[max_tokens=3] ::= "a"',
    "rules in any order": 'b ::= "x"\nroot ::= b',
    "two rules in a line": 'root ::= b b ::= "x"',
    "Lark": 'start: "(" ~ 99 WORD\nWORD: /[a-z]+/',
    "Lark with everything": (
        '%import common.INT\nstart: INT "x"i -> foo\n  | sub\n?sub.2: "(" start ")"\n%ignore / /'
    ),
    "Lark with JSON in it": 'start: %json {"type":"object","a":[1,"(" ]} <|eot|> @sub',
    "Lark with attributes": 'mygen[stop="\\n", max_tokens=10]: /.*/\nstart: mygen',
    "Lark with parameters": 'start: perm::0x0\nperm::_: "a" missing',
    "Lark with operators": 'start: A & ~B\nA: /[a-z]*/\nB: "b".."z"',
    "Lark with optional parts": 'start: [ "a" ] x{1,3}\nx: "::="',
    "Lark that is empty": "start: ",
    "several grammars": '{"grammars":[{"lark_grammar":"start: /a/"},{"json_schema":{}}]}',
}


@pytest.mark.parametrize("name", GOOD)
def test_a_grammar_that_some_engine_takes_passes(name: str) -> None:
    check_grammar(GOOD[name])


@pytest.mark.parametrize(
    ("grammar", "why"),
    [
        ("", "it is empty"),
        (" \n", "it is empty"),
        ("hello", "it has no rule; a rule is name ::= body in EBNF, and name: body in Lark"),
        ('root = "a"', "it has no rule; a rule is name ::= body in EBNF, and name: body in Lark"),
        ("# root ::= a", "it has no rule; a rule is name ::= body in EBNF, and name: body in Lark"),
        ("root ::= (", "')' is missing in the rule 'root'"),
        ('root ::= ("a"', "')' is missing in the rule 'root'"),
        ("root ::= )", "')' closes nothing in the rule 'root'"),
        ('root ::= ("a"}', "'}' closes nothing in the rule 'root'"),
        ('root ::= "a" ]', "']' closes nothing in the rule 'root'"),
        ('root ::= "a', "a string is not closed"),
        ('root ::= "a\\"', "a string is not closed"),
        ("root ::= [a", "a set of characters is not closed"),
        ("root ::= x", "it has no rule 'x'"),
        ('root ::= "a" | (b c)*\nb ::= "b"', "it has no rule 'c'"),
        ("root ::= " + "x" * 99, "it has no rule '" + "x" * 63 + "…'"),
        ('a ::= "x"', "it has no rule 'root', with which an EBNF grammar begins"),
        ("root ::= *", "there is nothing before '*' to repeat in the rule 'root'"),
        ('root ::= "a" | +', "there is nothing before '+' to repeat in the rule 'root'"),
        ('root ::= (? "a")', "there is nothing before '?' to repeat in the rule 'root'"),
        ("root ::=", "the rule 'root' is empty, so no text is allowed"),
        ("root ::= # nothing", "the rule 'root' is empty, so no text is allowed"),
        ('::= "a"', "it has '::=' without a rule's name before it"),
        ('root ::= "a" ::= "b"', "it has '::=' without a rule's name before it"),
        ('hello root ::= "a"', "'hello' stands before the first rule"),
        ('root ::= "a";', "';' has no meaning in EBNF"),
        ("root ::= /a/", "'/' has no meaning in EBNF"),
        ('root ::= "a" myRule', "it has no rule 'myRule'"),
        ("start: x", "it has no rule 'x'"),
        ("start: WORD", "it has no rule 'WORD'"),
        ("start: (", "')' is missing"),
        ('start: "a', "a string is not closed"),
        ("start: /a", "a regular expression is not closed"),
        ("start: * A\nA: /a/", "there is nothing before '*' to repeat"),
        ("start: /(/", "the regular expression '/(/': a group is not closed"),
        ('{"a":1}', "as JSON, it needs a list of grammars under 'grammars'"),
        ('{"grammars":[]}', "as JSON, it needs a list of grammars under 'grammars'"),
        ('{"grammars":[{"lark_grammar":"start: ("}]}', "')' is missing"),
    ],
)
def test_a_grammar_that_no_engine_takes_is_refused_with_the_reason(grammar: str, why: str) -> None:
    with pytest.raises(GrammarError) as caught:
        check_grammar(grammar)
    assert str(caught.value) == why


@pytest.mark.parametrize("grammar", ["{", "start: %json {", "start: %json", '{"a":' * 5_000])
def test_what_should_be_json_and_is_not_is_refused(grammar: str) -> None:
    with pytest.raises(GrammarError, match="JSON"):
        check_grammar(grammar)


def test_groups_nest_so_deep_and_no_deeper() -> None:
    check_grammar("root ::= " + "(" * NESTING_MAX + '"a"' + ")" * NESTING_MAX)
    with pytest.raises(GrammarError, match="nests more than 64 deep in the rule 'root'"):
        check_grammar("root ::= " + "(" * 65 + '"a"' + ")" * 65)


@pytest.mark.parametrize(
    ("head", "unit"),
    [
        ("root ::= ", "a"), ("root ::= ", "a-"), ("root ::= ", "[^"), ("root ::= ", "/\\"),
        ("root ::= ", "<"), ("root ::= ", "<a"), ("root ::= ", '"\\'), ("root ::= ", "("),
        ("root ::= ", "-"), ("", "["), ("", "("), ("", '"'), ("", "root ::="), ("", "a[]"), ("", "a\n"),
        ("", "#"), ("", "_"), ("start: ", "a "), ("start: ", "%json "), ("start: ", "/a"),
        ("a: ", "["), ("", "%import "), ("", "?"),
    ],
)  # fmt: skip
def test_a_grammar_is_read_in_steps_that_grow_with_its_length_only(head: str, unit: str) -> None:
    seconds = [_seconds(head + unit * (size // len(unit))) for size in (8_000, 64_000)]
    # Eight times the length; what looks back over all of it would take sixty-four times as long.
    assert seconds[1] < 30 * seconds[0] + 0.05


def _seconds(grammar: str) -> float:
    def once() -> float:
        began = time.process_time()
        with contextlib.suppress(GrammarError):
            check_grammar(grammar)
        return time.process_time() - began

    return min(once() for _ in range(3))


def test_a_long_grammar_of_good_rules_passes() -> None:
    rules = [f'r{at} ::= "{at}" | r{(at + 1) % 2_000}' for at in range(2_000)]
    check_grammar("root ::= r0\n" + "\n".join(rules))
    check_grammar(json.dumps({"grammars": [{"lark_grammar": "start: /a/"}] * 200}))
