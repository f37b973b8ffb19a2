"""What is joined from a form is what the template prints; and what looks into a text has no form."""

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.generation.request import ChatPrompt, Thinking, Tool, Turn
from smg_node.prompts.jinja.prompt_skeleton import FORMS_MAX, TURNS_MAX, Forms, form_of
from smg_node.prompts.renderer import Renderer
from support.models.prompt_corpus import CHATS, NAMES, NOW, renderer, source
from support.tools.example_counts import example_count

NOW_MS = int(NOW.timestamp() * 1000)
_LOOP = "{%% for m in messages %%}{{ m.role }}:%s;{%% endfor %%}"
# Templates whose prompt is the same words around all texts, whatever those are.
FOLLOWED = {
    "printed": "{{ m.content }}",
    "printed twice": "{{ m.content }}{{ m['content'] }}",
    "got": "{{ m.get('content') }}",
    "trimmed": "{{ m.content | trim }}",
    "stripped": "{{ m.content.strip() }}{{ m.content.rstrip('.!') }}{{ m.content.lstrip() }}",
    "stripped twice": "{{ m.content.strip().strip('ab') | trim('c') }}",
    "added": "{{ '<' + m.content + '>' }}{{ 'x' ~ m.content ~ 1 ~ none }}",
    "added and added to": "{% set t = m.content + '!' %}{{ t + t }}{% if t %}y{% endif %}",
    "a macro's": "{% macro f(x) %}[{{ x }}]{% endmacro %}{{ f(m.content) }}",
    "a block's": "{% set b %}({{ m.content | trim }}){% endset %}{{ b }}",
    "a caller's": "{% macro f() %}[{{ caller() }}]{% endmacro %}{% call f() %}{{ m.content }}{% endcall %}",
    "a namespace's": "{% set n = namespace(a=m.content) %}{% set n.b = n.a %}{{ n.b }}",
    "its value's": "{% for k, v in m.items() %}{{ k }}={{ v }},{% endfor %}",
    "asked what it is": "{% if m.content is string and m.content is defined and m.content is not none and"
    " m.content is not mapping and m.content is iterable %}{{ m.content }}{% endif %}",
    "asked for a word": "{% if 'a' in m.content %}+{% endif %}{{ m.content }}",
    "asked how it begins": "{% if m.content.startswith('a') or m.content.strip().endswith('b') %}+"
    "{% endif %}{{ m.content }}",
    "asked whether it is": "{% if m.content == 'a' or m.content is eq('b') or m.content != 'c' %}+"
    "{% endif %}{% if m.content == none or m.content == 3 %}-{% endif %}{{ m.content }}",
    "asked for nothing": "{% if m.content.strip() %}{{ m.content }}{% else %}nothing{% endif %}",
    "one of some": "{{ m.content if m.content in ['a', 'b'] else '-' }}",
    "the default": "{{ m.content | default('-') }}{{ m.nothing | default(m.content) }}",
    "the last one's": "{{ messages[-1].content }}{{ (messages | last).content }}{{ messages | length }}",
    "some of them": "{% for u in messages | selectattr('role', 'equalto', 'user') | list %}{{ u.content }}"
    "{% endfor %}{% for u in messages[1:] %}{{ u.content }}{% endfor %}",
    "dated": "{{ strftime_now('%d %b %Y') }}{{ m.content }}",
}
# Templates in which a text decides what else is printed, in ways that are not followed.
LOOKING = {
    "its length": "{{ m.content | length }}",
    "its beginning": "{{ m.content[:2] }}{{ m.content[0] }}",
    "its letters": "{% for c in m.content %}{{ c }}.{% endfor %}",
    "its words": "{{ m.content.split('a')[-1] }}",
    "in capitals": "{{ m.content | upper }}{{ m.content.title() }}",
    "as JSON": "{{ m.content | tojson }}",
    "all as JSON": "{{ messages | tojson }}",
    "as it is": "{{ m }}",
    "formatted": "{{ '%s' | format(m.content) }}{{ '%s' % m.content }}",
    "repeated": "{{ m.content * 2 }}",
    "replaced": "{{ m.content | replace('a', 'b') }}{{ m.content.replace('b', 'c') }}",
    "joined": "{{ messages | map(attribute='content') | join(',') }}{{ [m.content, 'x'] | join }}",
    "put in order": "{% for x in messages | sort(attribute='content') %}{{ x.content }}{% endfor %}",
    "grouped": "{% for x in messages | groupby('content') %}{{ x.grouper }}{% endfor %}",
    "compared with another": "{{ m.content == messages[0].content }}{{ m.content in messages[0].content }}",
    "before another": "{{ m.content < 'b' }}",
    "a key": "{{ {m.content: 1} }}{{ {'a': 'b'}[m.content] }}{{ {'a': 'b'}.get(m.content) }}",
    "a kind": "{{ m.content is lower }}{{ m.content is in('abc') }}{{ m.content is sameas m.content }}",
    "as a number": "{{ m.content | int }}{{ m.content.isdigit() }}",
    "backwards": "{{ m.content | reverse }}",
    "the first letter": "{{ m.content | first }}",
    "all letters": "{{ m.content | list }}",
    "counted": "{{ m.content.count('a') }}{{ m.content.find('a') }}",
    "a sum asked": "{{ (m.content + m.content) == 'aa' }}",
    "changed": "{% for x in messages %}{% if loop.changed(x.content) %}!{% endif %}{% endfor %}",
    "a wrong attribute": "{{ m.content.nothing }}{{ m.content.text }}",
}
WORDS = st.lists(
    st.sampled_from(
        ("a", "b", "c", " ", "\n", "</think>", "<tool_response>", "é", "🎉", "{{ x }}", "0", ".")
    ),
    min_size=1,
    max_size=5,
).map("".join)
ROLES = st.sampled_from(("system", "user", "assistant", "developer"))
TALKS = st.one_of(
    st.lists(ROLES, min_size=1, max_size=4),
    st.sampled_from((["user"], ["system", "user"], ["user", "assistant", "user"])),
)


def chat(roles: list[str], texts: list[str]) -> ChatPrompt:
    turns = zip(roles, texts, strict=True)
    return ChatPrompt(tuple(Turn(role, text) for role, text in turns))  # type: ignore[arg-type]  # all of them are roles


def known(ours: Renderer, prompt: ChatPrompt) -> str | None:
    return ours.known(prompt, now_ms=NOW_MS)


def taught(text: str, *prompts: ChatPrompt) -> Renderer:
    """Return a renderer that has seen these prompts as often as it takes."""
    ours = renderer(text)
    for prompt in prompts:
        for _ in range(3):
            ours.render(prompt, now=NOW)
    return ours


def plainly(ours: Renderer, prompt: ChatPrompt) -> str | None:
    assert ours.forms is not None
    return ours.forms.plain_text(prompt.turns, lambda: NOW_MS)


@settings(deadline=None)
@given(
    st.sampled_from(sorted({**FOLLOWED, **LOOKING})),
    st.lists(ROLES, max_size=5),
    st.data(),
    st.sampled_from((1, 16)),
)
def test_what_is_known_to_be_plain_is_joined_as_any_other(
    name: str, roles: list[str], data: st.DataObject, times: int
) -> None:
    roles = roles * times
    ours = renderer(_LOOP % {**FOLLOWED, **LOOKING}[name])
    for _ in range(6):
        texts = data.draw(
            st.lists(st.one_of(WORDS, st.just("")), min_size=len(roles), max_size=len(roles))
        )
        prompt = chat(roles, texts)
        assert plainly(ours, prompt) == known(ours, prompt)
        try:
            ours.render(prompt, now=NOW)
        except Exception:  # some of these fail; what they fail at is no matter here
            return


def test_a_plain_prompt_is_joined_without_a_look_at_its_texts_or_the_clock() -> None:
    def clock() -> int:
        raise AssertionError("nobody asked for the time")

    roles, words = ["user", "assistant"], FOLLOWED["printed"]
    ours = taught(_LOOP % words, chat(roles, ["One", "Two"]))
    assert ours.forms is not None
    other = chat(roles, ["Three", "Four"])
    assert ours.forms.plain_text(other.turns, clock) == ours.render(other, now=NOW)
    assert plainly(ours, chat(roles, ["Three", "x" * (9 << 20)])) is None
    dated = taught(_LOOP % FOLLOWED["dated"], chat(roles, ["One", "Two"]))
    assert dated.forms is not None
    assert plainly(dated, other) == dated.render(other, now=NOW)
    with pytest.raises(AssertionError, match="nobody asked"):
        dated.forms.plain_text(other.turns, clock)


@pytest.mark.parametrize("name", ["some of them", "the last one's", "printed twice"])
def test_texts_that_are_not_printed_once_each_are_put_where_they_belong(name: str) -> None:
    roles = ["user", "assistant"]
    ours = taught(_LOOP % FOLLOWED[name], chat(roles, ["One", "Two"]))
    other = chat(roles, ["Three", "Four"])
    assert plainly(ours, other) == ours.render(other, now=NOW)


@pytest.mark.parametrize("name", FOLLOWED)
def test_a_template_that_only_prints_its_texts_has_a_form(name: str) -> None:
    ours = taught(_LOOP % FOLLOWED[name], chat(["user", "assistant"], ["One", "Two"]))
    other = chat(["user", "assistant"], ["Three ", "Four"])
    assert known(ours, other) == ours.render(other, now=NOW)


@pytest.mark.parametrize("name", LOOKING)
def test_a_template_that_looks_into_its_texts_has_none(name: str) -> None:
    prompt = chat(["user", "assistant"], ["a", "bca"])
    ours = renderer(_LOOP % LOOKING[name])
    for _ in range(3):
        try:
            ours.render(prompt, now=NOW)
        except Exception:  # some of these fail; what they fail at is no matter here
            break
    assert known(ours, prompt) is None


@settings(deadline=None, max_examples=example_count(120))
@given(st.data())
def test_what_is_joined_is_what_the_template_prints(data: st.DataObject) -> None:
    bodies = {**{name: _LOOP % body for name, body in {**FOLLOWED, **LOOKING}.items()}}
    texts = {**bodies, **{name: source(name) for name in NAMES}}
    ours = renderer(texts[data.draw(st.sampled_from(sorted(texts)))])
    roles = data.draw(TALKS)
    for _ in range(6):
        said = data.draw(st.lists(WORDS, min_size=len(roles), max_size=len(roles)))
        prompt = chat(roles, said)
        found = known(ours, prompt)
        try:
            printed = ours.render(prompt, now=NOW)
        except Exception:  # what a template refuses has no form
            assert found is None
            return
        assert found in (None, printed)


def test_most_templates_have_a_form_for_an_ordinary_chat() -> None:
    first, second = chat(["user"], ["Hello there"]), chat(["user"], ["  Good\nday "])
    for name in NAMES:
        ours = taught(source(name), first)
        # It groups the messages, and only by their roles; but grouping is not followed.
        wanted = None if name == "python_calls" else ours.render(second, now=NOW)
        assert known(ours, second) == wanted, name


def test_a_form_is_looked_for_when_it_is_seen_again() -> None:
    ours = renderer(source("chatml"))
    prompt = chat(["user"], ["Hi"])
    assert known(ours, prompt) is None
    ours.render(prompt, now=NOW)
    assert known(ours, prompt) is None
    ours.render(prompt, now=NOW)
    assert known(ours, prompt) == ours.render(prompt, now=NOW)


def test_texts_that_answer_questions_differently_have_forms_of_their_own() -> None:
    body = _LOOP % FOLLOWED["asked for a word"]
    ours = taught(body, chat(["user"], ["with a"]))
    without = chat(["user"], ["nowhere"])
    assert known(ours, without) is None
    ours.render(without, now=NOW)
    assert known(ours, without) == "user:nowhere;"
    assert known(ours, chat(["user"], ["a"])) == "user:+a;"


def test_a_form_with_a_date_holds_for_that_day() -> None:
    prompt = chat(["user"], ["Hi"])
    ours = taught(_LOOP % FOLLOWED["dated"], prompt)
    assert known(ours, prompt) == "user:03 Nov 2026Hi;"
    tomorrow = NOW + timedelta(days=1)
    assert ours.known(prompt, now_ms=int(tomorrow.timestamp() * 1000)) is None


def test_what_would_pass_a_limit_goes_the_long_way() -> None:
    prompt = chat(["user"], ["Hi"])
    ours = taught(source("chatml"), prompt)
    assert known(ours, prompt) is not None
    assert known(ours, chat(["user"], ["x" * (9 << 20)])) is None


@pytest.mark.parametrize("name", CHATS)
def test_what_is_no_plain_conversation_has_no_form(name: str) -> None:
    prompt = CHATS[name]
    plain = all(type(turn.content) is str and turn.content for turn in prompt.turns)
    if form_of(prompt) is not None:
        assert plain
        assert not prompt.tools
        assert prompt.documents is None
    assert form_of(ChatPrompt(prompt.turns, tools=(Tool("f"),))) is None


def test_what_else_a_template_is_told_makes_another_form() -> None:
    text = "{{ messages[0].content }}:{{ said }}"
    prompts = [
        ChatPrompt((Turn("user", "Hi"),), kwargs={"said": value} if value is not None else {})
        for value in (None, True, 1, "1", "")
    ]
    ours = taught(text, *prompts)
    assert [known(ours, each) for each in prompts] == ["Hi:", "Hi:True", "Hi:1", "Hi:1", "Hi:"]
    for strange in (
        {"said": 1.0},
        {"said": [1]},
        {"said": "x" * 99},
        {str(i): i for i in range(9)},
    ):
        assert form_of(ChatPrompt((Turn("user", "Hi"),), kwargs=strange)) is None


def test_a_wish_that_is_not_heeded_is_told_each_time() -> None:
    heeding = taught("{{ reasoning_effort or 'medium' }}{{ messages[0].content }}")
    deaf = taught("{{ messages[0].content }}")
    wish = ChatPrompt((Turn("user", "Hi"),), thinking=Thinking("high"))
    for ours in (heeding, deaf):
        for _ in range(3):
            ours.render(wish, now=NOW)
    assert known(heeding, wish) == "highHi"
    assert known(deaf, wish) is None


def test_long_and_many_forms_are_not_remembered() -> None:
    assert form_of(chat(["user"] * (TURNS_MAX + 1), ["x"] * (TURNS_MAX + 1))) is None
    forms = Forms()
    for count in range(FORMS_MAX + 9):
        assert not forms.wanted((True, ("user",) * count, ()))
    assert len(forms._known) == FORMS_MAX
    assert not forms.wanted((True, (), ()))
    wordy = taught("w" * 40_000 + _LOOP % "{{ m.content }}", chat(["user"], ["Hi"]))
    assert known(wordy, chat(["user"], ["Hi"])) is None
