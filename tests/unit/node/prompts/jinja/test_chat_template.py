"""The environment of chat templates, compared with what the reference does."""

import gc
import weakref
from datetime import UTC, datetime
from typing import Any

import pytest

from smg_node.prompts.jinja.chat_template import ChatTemplate, TemplateError, TemplateLimits
from smg_node.prompts.jinja.sandbox import Today
from support.models.prompt_corpus import compiled


def show(text: str, **variables: Any) -> str:
    return compiled(text).render(variables)


def test_block_lines_leave_no_trace() -> None:
    assert show("a\n  {% if true %}\nb\n  {% endif %}\nc\n") == "a\nb\nc"


def test_newlines_inside_texts_stay_as_they_are() -> None:
    assert show("{{ 'a\\nb' }}{{ x }}", x="c\\nd") == "a\nbc\\nd"


def test_json_is_not_escaped_for_html() -> None:
    value = {"b": "<&'>", "a": ["é", None, True, 1.5]}
    assert show("{{ x|tojson }}", x=value) == """{"b": "<&'>", "a": ["é", null, true, 1.5]}"""


def test_json_takes_the_reference_arguments() -> None:
    text = "{{ x|tojson(ensure_ascii=true, indent=2, separators=(',', ':'), sort_keys=true) }}"
    assert show(text, x={"b": "é", "a": 1}) == '{\n  "a":1,\n  "b":"\\u00e9"\n}'


def test_json_of_something_undefined_is_a_failure_that_names_the_line() -> None:
    with pytest.raises(TemplateError, match=r"line 2.*not JSON serializable") as failure:
        show("\n{{ x|tojson }}")
    assert failure.value.kind == "broken"


def test_loops_can_be_left_and_continued() -> None:
    text = "{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 4 %}{% break %}{% endif %}{{ i }}{% endfor %}"
    assert show(text) == "023"


def test_the_generation_tag_prints_its_body_in_a_scope_of_its_own() -> None:
    assert (
        show("{% set x = 1 %}{% generation %}{% set x = 2 %}{{ x }}{% endgeneration %}{{ x }}")
        == "21"
    )


def test_what_is_undefined_prints_nothing_and_its_attributes_fail() -> None:
    assert show("[{{ x }}]") == "[]"
    with pytest.raises(TemplateError, match="'x' is undefined"):
        show("{{ x.y }}")


def test_an_exception_of_the_template_is_its_own_message() -> None:
    with pytest.raises(TemplateError) as failure:
        show("{{ raise_exception('Roles must <alternate>') }}")
    assert (failure.value.kind, failure.value.message) == ("raised", "Roles must <alternate>")


def test_the_date_is_what_it_is_told() -> None:
    today = Today(datetime(2026, 1, 2, tzinfo=UTC))
    assert show("{{ strftime_now('%d %b %Y') }}", strftime_now=today) == "02 Jan 2026"


def test_keys_win_over_nothing_and_methods_over_keys() -> None:
    data = {"items": "key", "role": "user", "x": {"y": 1}}
    assert show("{{ d.role }}{{ d['role'] }}{{ d.x.y }}{{ d.nothing }}", d=data) == "useruser1"
    assert show("{{ d['items'] }}|{{ d.items() | length }}", d=data) == "key|3"


def test_negative_and_far_indexes_behave_as_in_python() -> None:
    assert show("{{ l[-1] }}{{ l[0] }}[{{ l[9] }}]{{ l[1:]|length }}", l=["a", "b"]) == "ba[]1"


def test_methods_of_texts_and_dicts_can_be_called() -> None:
    text = (
        "{{ ' ab '.strip() }}{{ 'a-b'.split('-')|join('+') }}{{ 'x'.upper() }}{{ 'ab'.startswith('a') }}"
        "{{ 'ab'.replace('a', 'c') }}{{ d.get('k', 'none') }}{{ d.keys()|list }}{{ '{}:{x}'.format(1, x=2) }}"
        "{{ 'a b'.split() }}{{ 'abc'.rstrip('c') }}{{ 'a\\nb'.splitlines()|length }}{{ 'é'.center(3) }}|"
    )
    assert show(text, d={"k": 1}) == "aba+bXTruecb1['k']1:2['a', 'b']ab2 é |"


def test_text_marked_as_safe_joins_as_in_the_reference() -> None:
    assert show("{{ ('<a>'|safe) + '<b>' }}{{ '<c>' ~ ('<d>'|safe) }}") == "<a>&lt;b&gt;<c><d>"


def test_a_namespace_keeps_what_loops_assign() -> None:
    text = "{% set ns = namespace(n=0) %}{% for i in [1, 2] %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}{{ ns.no }}"
    assert show(text) == "3"


def test_macros_callers_and_their_arguments_work() -> None:
    text = (
        "{% macro m(a, b='B') %}{{ a }}{{ b }}{{ varargs|join }}{{ kwargs|length }}{{ caller() if caller }}{% endmacro %}"
        "{{ m('x') }}{{ m(1, 2, 3, c=4) }}{% call m('y') %}!{% endcall %}"
    )
    assert show(text) == "xB01231yB0!"


def test_loop_variables_and_recursion_work() -> None:
    text = "{% for n in tree recursive %}{{ n.v }}{{ loop.depth }}{% if n.c %}({{ loop(n.c) }}){% endif %}{% endfor %}"
    assert show(text, tree=[{"v": "a", "c": [{"v": "b"}]}]) == "a1(b2)"
    text = "{% for i in 'abc' %}{{ loop.index }}{{ loop.last }}{{ loop.previtem }}{{ loop.cycle('x', 'y') }}{% endfor %}"
    assert show(text) == "1Falsex2Falseay3Truebx"


def test_the_undeclared_variables_are_known() -> None:
    template = compiled("{% set a = b %}{{ c.d }}{% for e in f %}{{ e }}{% endfor %}")
    assert template.variables >= {"b", "c", "f"}
    assert not template.variables & {"a", "e", "d"}


def test_templates_are_known_by_the_digest_of_their_text() -> None:
    assert compiled("a").digest == compiled("a").digest
    assert compiled("a").digest != compiled("b").digest


def test_a_source_beyond_the_limit_is_refused() -> None:
    with pytest.raises(TemplateError, match="has 11 bytes, more than 10"):
        compiled("x" * 11, source_max_bytes=10)
    assert compiled("x" * 10, source_max_bytes=10).render({}) == "x" * 10


def test_output_is_limited_in_bytes_while_it_is_printed() -> None:
    text = "{% for i in range(n) %}é{% endfor %}"
    template = compiled(text, output_max_bytes=4000)
    assert template.render({"n": 2000}) == "é" * 2000
    with pytest.raises(TemplateError) as failure:
        template.render({"n": 2001})
    assert failure.value.kind == "output"


def test_time_is_what_the_clock_says() -> None:
    ticks = iter(range(10**9))
    template = ChatTemplate(
        "{% for i in range(99999) %}{% endfor %}",
        limits=TemplateLimits(render_max_s=3),
        monotonic_s=lambda: float(next(ticks)),
    )
    with pytest.raises(TemplateError) as failure:
        template.render({})
    assert failure.value.kind == "time"


def test_the_meter_of_one_render_is_not_that_of_the_next() -> None:
    template = compiled("{% for i in range(999) %}x{% endfor %}", output_max_bytes=4096)
    assert {template.render({}) for _ in range(50)} == {"x" * 999}


@pytest.mark.parametrize(
    "text",
    ["{% if %}", "{{ x", "{% for x in y %}", "{{ 1|nothing }}", "{% include 'x' %}", "{% break %}"],
)
def test_what_cannot_be_compiled_says_so(text: str) -> None:
    with pytest.raises(TemplateError) as failure:
        compiled(text)
    assert failure.value.kind == "compile"


def test_what_a_template_with_macros_was_given_does_not_wait_for_the_garbage_collector() -> None:
    class Messages(list[dict[str, str]]):
        """A conversation that can be watched."""

    template = compiled(
        "{%- macro said(text) -%}{{ text }}!{%- endmacro -%}{{ said(messages[0].content) }}"
    )
    gc.collect()
    gc.disable()
    try:
        messages = Messages([{"content": "a long conversation"}])
        known = weakref.ref(messages)
        assert template.render({"messages": messages}) == "a long conversation!"
        del messages
        assert known() is None
    finally:
        gc.enable()
