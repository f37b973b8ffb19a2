"""What is found out about a template by reading and asking it."""

import pytest

from smg_node.prompts.analysis.content_format import read_template
from smg_node.prompts.analysis.template_facts import TemplateFacts, find_facts
from support.models.prompt_corpus import NAMES, TOKENS, compiled, renderer, source

_EACH = "{% for message in messages %}"
_CALLS = _EACH + "{{ message.role }}{% for call in message.tool_calls or [] %}"


def facts_of(text: str) -> TemplateFacts:
    return find_facts(compiled(text), TOKENS)


FORMS = {
    "concatenation": (_EACH + "{{ '<' + message.content + '>' }}{% endfor %}", "string", False),
    "printing": (_EACH + "{{ message.content }}{% endfor %}", "string", False),
    "a loop over content": (
        _EACH + "{% for p in message.content %}{{ p.text }}{% endfor %}{% endfor %}",
        "parts",
        True,
    ),
    "a loop by subscript": (
        "{% for m in messages %}{% for p in m['content'] %}{{ p['text'] }}{% endfor %}{% endfor %}",
        "parts",
        True,
    ),
    "a loop through an alias": (
        _EACH + "{% set c = message.content %}{% for p in c %}{{ p.text }}{% endfor %}{% endfor %}",
        "parts",
        True,
    ),
    "a loop in a macro": (
        "{% macro m(c) %}{% for p in c %}{{ p.text }}{% endfor %}{% endmacro %}"
        + _EACH
        + "{{ m(message.content) }}{% endfor %}",
        "parts",
        True,
    ),
    "the first part": (_EACH + "{{ message.content[0].text }}{% endfor %}", "parts", True),
    "a loop over selected parts": (
        _EACH
        + "{% for p in message.content|selectattr('type', '==', 'text') %}{{ p.text }}{% endfor %}{% endfor %}",
        "parts",
        True,
    ),
    "both branches": (
        _EACH
        + "{% if message.content is string %}{{ message.content }}{% else %}{% for p in message.content %}{{ p.text }}{% endfor %}{% endif %}{% endfor %}",
        "string",
        True,
    ),
    "a template that raises at parts": (
        _EACH
        + "{% if message.content is not string %}{{ raise_exception('no') }}{% endif %}{{ message.content }}{% endfor %}",
        "string",
        False,
    ),
    "content as JSON": (_EACH + "{{ message.content|tojson }}{% endfor %}", "string", False),
    "a template that refuses every probe, with a loop": (
        "{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}{{ raise_exception('x') }}",
        "parts",
        False,
    ),
    "a template that refuses every probe, without one": (
        "{{ raise_exception('x') }}",
        "string",
        False,
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_the_form_of_content_is_found(name: str) -> None:
    text, form, takes_parts = FORMS[name]
    facts = facts_of(text)
    assert (facts.content, facts.takes_parts) == (form, takes_parts)


@pytest.mark.parametrize(
    ("text", "loops", "asks"),
    [
        ("{% for p in m.content %}{% endfor %}", True, False),
        ("{% for p in m.get('content') %}{% endfor %}", True, False),
        ("{% for p in (m.content or []) %}{% endfor %}", True, False),
        ("{% for p in (m.content if m.content else '') %}{% endfor %}", True, False),
        ("{% set ns.c = m.content %}{% for p in ns.c %}{% endfor %}", True, False),
        ("{% set a = m.content %}{% set b = a %}{% for p in b %}{% endfor %}", True, False),
        ("{% macro x(a, b) %}{% for p in b %}{% endfor %}{% endmacro %}{{ x(1, b=m.content) }}", True, False),
        ("{% for p in m.content.split('x') %}{% endfor %}", False, False),
        ("{% for k in m.content|items %}{% endfor %}", False, False),
        ("{% for m in messages %}{{ m.content }}{% endfor %}", False, False),
        ("{{ m.content is string }}{% for p in m.content %}{% endfor %}", True, True),
        ("{{ m.content is iterable }}", False, True),
        ("{{ m.role is string }}", False, False),
    ],
)  # fmt: skip
def test_a_tree_tells_what_happens_to_content(text: str, loops: bool, asks: bool) -> None:
    reading = read_template(compiled(text).tree())
    assert (reading.loops, reading.asks) == (loops, asks)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (_CALLS + "{{ call.function.arguments|tojson }}{% endfor %}{% endfor %}", "object"),
        (_CALLS + "{% for k, v in call.function.arguments.items() %}{{ k }}={{ v }}{% endfor %}{% endfor %}{% endfor %}", "object"),
        (_CALLS + "{% for k, v in call.function.arguments|items %}{{ k }}={{ v }}{% endfor %}{% endfor %}{% endfor %}", "object"),
        (_CALLS + "{{ call.function|tojson }}{% endfor %}{% endfor %}", "object"),
        (_CALLS + "{{ 'x' + call.function.arguments }}{% endfor %}{% endfor %}", "string"),
        (_CALLS + "{{ call.function.arguments }}{% endfor %}{% endfor %}", "string"),
        (_CALLS + "{% if call.function.arguments is string %}{{ call.function.arguments }}{% else %}{{ call.function.arguments|tojson }}{% endif %}{% endfor %}{% endfor %}", "object"),
        (_EACH + "{{ message.content }}{% endfor %}", "object"),
    ],
)  # fmt: skip
def test_the_form_of_arguments_is_found(text: str, form: str) -> None:
    assert facts_of(text).arguments == form


@pytest.mark.parametrize(
    ("text", "nothing"),
    [
        (_EACH + "{{ message.content }}{% endfor %}", ""),
        (_EACH + "{{ '' + message.content }}{% endfor %}", ""),
        (_EACH + "{{ message.content if message.content is string else message.content|tojson }}{% endfor %}", ""),
        (_EACH + "{% if message.content %}{{ message.content }}{% endif %}{% endfor %}", None),
        (_EACH + "{% if message.content is not none %}{{ message.content }}{% endif %}{% endfor %}", None),
        ("None of it. " + _EACH + "{{ message.content or '' }}{% endfor %}", None),
        (_EACH + "{% if message.content is string %}{{ raise_exception('parts!') }}{% endif %}{% for p in message.content %}{{ p.text }}{% endfor %}{% endfor %}", ""),
    ],
)  # fmt: skip
def test_what_stands_for_nothing_is_found(text: str, nothing: str | None) -> None:
    found = facts_of(text).nothing()
    assert found == nothing
    assert type(found) is type(nothing)


def test_tool_results_are_strings_unless_their_content_is_looped_over() -> None:
    split = _EACH + (
        "{% if message.role == 'tool' %}{% for p in message.content %}{{ p.text }}{% endfor %}"
        "{% else %}{{ message.content }}{% endif %}{% endfor %}"
    )
    facts = facts_of(split)
    assert (facts.content, facts.tool_content) == ("string", "parts")
    assert renderer(source("llama")).facts().tool_content == "string"


def test_roles_and_thoughts_are_read_from_the_words() -> None:
    facts = facts_of("{{ messages[0].role == 'developer' }}{{ messages[0].thinking }}")
    assert facts.knows_developer
    assert facts.reasoning_keys == ("reasoning_content", "thinking")
    assert not facts_of("{{ messages[0].role }}").knows_developer


def test_thoughts_go_where_the_template_looks_for_them() -> None:
    parts = _EACH + (
        "{% if message.content is string %}{{ message.content }}{% else %}"
        "{% for p in message.content %}{% if p.type == 'thinking' %}<t>{{ p.thinking }}</t>{% else %}"
        "{{ p.text }}{% endif %}{% endfor %}{% endif %}"
    )
    assert facts_of(parts + "{% endfor %}").thought_parts
    assert not facts_of(parts + "{{ message.thinking }}{% endfor %}").thought_parts
    assert not facts_of(_EACH + "{{ message.content }} thinking{% endfor %}").thought_parts


@pytest.mark.parametrize(
    ("shown", "needed"),
    [
        ("{{ t.function.name + t.function.description }}", True),
        ("{{ t.function.description | tojson }}", True),
        ("{{ t.function.description }}", False),
        ("{{ t | tojson }}", False),
    ],
)
def test_it_is_found_out_whether_tools_need_descriptions(shown: str, needed: bool) -> None:
    text = "{% for t in tools or [] %}" + shown + "{% endfor %}{{ messages[0].content }}"
    assert facts_of(text).needs_descriptions == needed


@pytest.mark.parametrize("name", NAMES)
def test_facts_about_the_corpus_are_found_without_running_into_a_limit(name: str) -> None:
    assert facts_of(source(name)) == facts_of(source(name))


def test_a_template_that_never_ends_is_asked_once() -> None:
    endless = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    clock = [0.0]

    def monotonic_s() -> float:
        clock[0] += 0.01
        return clock[0]

    template = compiled(endless)
    template._monotonic_s = monotonic_s
    assert find_facts(template, TOKENS).content == "string"
    assert clock[0] < 1


@pytest.mark.parametrize(
    ("name", "takes"),
    [
        ("chatml", True),
        ("llama", True),
        ("parts_only", True),
        ("both_forms", False),
        ("deepseek", False),
        ("gemma", False),
        ("mistral", False),
    ],
)
def test_whether_a_later_system_message_is_taken_where_it_stands(name: str, takes: bool) -> None:
    assert facts_of(source(name)).later_systems == takes


_PART: str = _EACH + "{% for p in message.content %}{{ p.text }}{% if PICTURE %}<pic>{% endif %}"


@pytest.mark.parametrize(
    ("asked", "part"),
    [
        ("p.type == 'image'", "image"),
        ("'image' in p", "image"),
        ("p.type in ['image', 'image_url']", "image"),
        ("p.type == 'image_url'", "image_url"),
        ("p.image_url", "image_url"),
        ("p.type == 'video'", ""),
        ("p.image == 'another'", ""),
    ],
)
def test_what_a_template_calls_a_picture(asked: str, part: str) -> None:
    facts = facts_of(_PART.replace("PICTURE", asked) + "{% endfor %}{% endfor %}")
    assert (facts.picture_part, facts.tool_picture_part) == (part, part)


def test_a_template_that_prints_lists_knows_no_pictures() -> None:
    assert facts_of(_EACH + "{{ message.content }} image{% endfor %}").picture_part == ""
