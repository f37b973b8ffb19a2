"""Wherever Jinja's own sandbox prints something for an expression, so do we, and the same."""

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from smg_node.prompts.jinja.chat_template import TemplateError
from support.models.prompt_corpus import compiled
from support.tools.example_counts import example_count


def _printed(text: str, variables: dict[str, Any]) -> str | TemplateError:
    try:
        return compiled(text).render(variables)
    except TemplateError as error:
        return error


def _tojson(
    x: Any,
    ensure_ascii: bool = False,
    indent: Any = None,
    separators: Any = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(
        x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


REFERENCE = ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols]
)
REFERENCE.filters["tojson"] = _tojson
VALUES = st.sampled_from(
    [
        *("'aB c'", "'a,b,,c'", "''", "'é\\n x'", "3", "-2", "2.5", "true", "none", "missing"),
        *(
            "[]",
            "[1, 2, 1]",
            "['b', 'A', 'c']",
            "('x', 'y')",
            "{}",
            "{'b': 1, 'a': 'z'}",
            "range(4)",
        ),
        *("messages", "messages[0]", "messages[-1].content", "d", "d.items()", "d.keys()", "n.m"),
        *("[[1, 'a'], [2, 'b']]", "('<a>'|safe)", "messages|length", "d.nothing"),
    ]
)
FILTERS = st.sampled_from(
    [
        *(
            "upper",
            "lower",
            "trim",
            "length",
            "count",
            "list",
            "first",
            "last",
            "join",
            "join('-')",
        ),
        *(
            "tojson",
            "tojson(indent=2)",
            "string",
            "int",
            "float",
            "abs",
            "round",
            "round(1)",
            "sort",
        ),
        *("unique|list", "reverse|list", "map('string')|list", "map(attribute='role')|list", "e"),
        *("select|list", "select('string')|list", "reject('none')|list", "items|list", "dictsort"),
        *(
            "selectattr('role', 'equalto', 'user')|list",
            "rejectattr('role', 'defined')|list",
            "d('x')",
        ),
        *(
            "default('x', true)",
            "replace('a', 'bb')",
            "replace('', '-')",
            "indent",
            "indent(2, true)",
        ),
        *(
            "capitalize",
            "title",
            "center(9)",
            "truncate(3, true, '')",
            "wordcount",
            "urlencode",
            "sum",
        ),
        *(
            "max",
            "min",
            "batch(2)|list",
            "batch(2, 0)|list",
            "slice(2)|list",
            "groupby('role')|list",
        ),
        *(
            "format(1)",
            "format('a', 2)",
            "safe",
            "attr('upper')",
            "map('int')|sum",
            "sort(reverse=true)",
        ),
        *("join(', ', attribute='role')", "map('upper')|join", "tojson(sort_keys=true)", "int(7)"),
    ]
)
METHODS = st.sampled_from(
    [
        *(".strip()", ".split()", ".split(',')", ".split(',', 1)", ".rsplit(',', 1)", ".upper()"),
        *(
            ".startswith('a')",
            ".replace('a', 'b')",
            ".replace('a', 'b', 1)",
            ".splitlines()",
            ".title()",
        ),
        *(
            ".items()",
            ".keys()",
            ".values()",
            ".get('a')",
            ".get('q', 'w')",
            ".count('a')",
            ".index(1)",
        ),
        *(
            ".join(['x', 'y'])",
            ".format(1, a=2)",
            ".center(5)",
            ".ljust(4, '.')",
            ".zfill(5)",
            ".role",
        ),
        *("[0]", "[-1]", "['role']", "[1:]", "[:-1]", "[::-1]", "[5]", ".append(1)", ".__class__"),
        *(
            ".lstrip('a')",
            ".partition(',')",
            ".expandtabs()",
            ".content.upper()",
            ".removeprefix('a')",
        ),
    ]
)
OPERATORS = st.sampled_from(
    ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", ">=", "in", "not in", "and", "or"]
)
QUESTIONS = st.sampled_from(
    [
        *("string", "number", "mapping", "sequence", "iterable", "none", "defined", "undefined"),
        *(
            "odd",
            "even",
            "divisibleby(2)",
            "eq(1)",
            "in([1, 'a'])",
            "sameas(none)",
            "true",
            "lower",
        ),
        *("not string", "integer", "float", "boolean", "callable", "upper", "lt(5)", "ne('a')"),
    ]
)
EXPRESSIONS = st.recursive(
    VALUES,
    lambda inner: st.one_of(
        st.builds("({}|{})".format, inner, FILTERS),
        st.builds("({}){}".format, inner, METHODS),
        st.builds("({} {} {})".format, inner, OPERATORS, inner),
        st.builds("({} is {})".format, inner, QUESTIONS),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("[{}, {}]".format, inner, inner),
        st.builds("{{'k': {}}}".format, inner),
    ),
    max_leaves=5,
)
LINES = st.one_of(
    st.builds("{{{{ {} }}}}".format, EXPRESSIONS),
    st.builds("{{% set v = {} %}}{{{{ v }}}}".format, EXPRESSIONS),
    st.builds(
        "{{% for v in {} %}}{{{{ loop.index }}}}{{{{ v }}}}{{{{ loop.last }}}}{{% endfor %}}".format,
        EXPRESSIONS,
    ),
    st.builds("{{% if {} %}}yes{{% else %}}no{{% endif %}}".format, EXPRESSIONS),
    st.builds(
        "{{% macro f(a, b={}) %}}{{{{ a }}}}{{{{ b }}}}{{% endmacro %}}{{{{ f({}) }}}}".format,
        EXPRESSIONS,
        EXPRESSIONS,
    ),
)


@given(st.lists(LINES, min_size=1, max_size=2).map("\n".join))
@example("{{ ('aB c' ~ [1]) * 2 }}{{ '%s-%05d' % ('a', 7) }}")
@example("{{ [1, 2, 1]|sort(reverse=true) }}{{ ('<a>'|safe) + '<b>' }}")
@settings(max_examples=example_count(400), deadline=None)
def test_what_the_reference_prints_we_print(text: str) -> None:
    """Wherever Jinja's own sandbox makes a text, so do we, and the same.

    Except the few things that a template may not have here, which say so.
    """
    variables: dict[str, Any] = {
        "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "a\tb"}],
        "d": {"a": 1, "role": "x", "é": [None, True]},
        "n": {"m": {"role": 5}},
    }
    # Jinja lets through whatever Python raises; all of it means that there is no text.
    try:
        expected = REFERENCE.from_string(text).render(variables)
    except Exception as error:  # any of them, see above
        expected = f"!{type(error).__name__}"
    printed = _printed(text, variables)
    if not isinstance(printed, TemplateError):
        assert printed == expected
        return
    refusals = (
        *("has no text", "a number is needed here", "only numbers can be summed"),
        "format is not available on text marked as safe",
        # A slice of a constant number or dict prints nothing in Jinja, and fails of a variable one.
        *("object is not subscriptable", "unhashable type: 'slice'"),
    )
    ours = any(words in printed.message for words in refusals)
    assert ours or printed.kind in ("output", "depth") or expected.startswith("!"), printed.message
