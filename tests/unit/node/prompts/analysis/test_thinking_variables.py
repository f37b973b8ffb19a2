"""How a template is told to think: what is found out about it, and what becomes of a wish."""

from collections.abc import Mapping
from typing import Any

import pytest

from smg_node.core.generation.request import ChatPrompt, Effort, Thinking, Turn
from smg_node.prompts.analysis.template_facts import find_facts
from smg_node.prompts.analysis.thinking_switch import DIAL
from smg_node.prompts.analysis.thinking_variables import Levels, Switch, nearest, thinking_variables
from support.models.prompt_corpus import NOW, TOKENS, compiled, renderer, renderer_of_texts

_EACH = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[answer]"

# How families tell their models, in as few words as they can be said.
FAMILIES: Mapping[str, str] = {
    "closed pair when off": _EACH
    + "{% if enable_thinking is defined and enable_thinking is false %}<think></think>{% endif %}",
    "opener when on": _EACH + "{% if thinking %}<think>{% else %}</think>{% endif %}",
    "set where nobody did": "{% if thinking is undefined %}{% set thinking = true %}{% endif %}"
    + _EACH
    + "{% if thinking %}<think>{% else %}<answer>{% endif %}",
    "three modes": "{% set mode = thinking_mode | default('adaptive') %}({{ mode == 'adaptive' }})"
    + _EACH
    + "{% if mode == 'enabled' %}<think>{% elif mode == 'disabled' %}</think>{% endif %}",
    "a word in the system turn": "{% if reasoning %}(you may reason){% endif %}" + _EACH,
    "without a system message only": "{% if messages[0].role != 'system' and thinking %}(think){% endif %}"
    + _EACH,
    "any word is printed": "Reasoning: {{ reasoning_effort | default('medium') }}" + _EACH,
    "two words, others are refused": "{% if reasoning_effort is defined and reasoning_effort not in ['none', 'high'] %}"
    "{{ raise_exception('no such effort') }}{% endif %}{{ reasoning_effort or 'none' }} reasoning"
    + _EACH,
    "no_think among the words": "{% set e = reasoning_effort | default('no_think') %}"
    "{% if e not in ['no_think', 'low', 'high'] %}{{ raise_exception(e) }}{% endif %}{{ e }} reasoning"
    + _EACH,
    "the lowest words close the thought": _EACH
    + "<think>{% if (reasoning_effort or 'high') in ['low', 'minimal'] %}</think>{% endif %}",
    "an opener for each effort": _EACH
    + "{% set e = reasoning_effort | default('high') %}{% if e == 'low' %}<think_faster>{% elif e == 'medium' %}"
    "<think_fast>{% else %}<think>{% endif %}",
    "any word is printed, but one": "{% if reasoning_effort != 'none' %}Reasoning: "
    "{{ reasoning_effort | default('high') }}{% endif %}" + _EACH,
    "a switch and words": _EACH
    + "{% if thinking | default(false) %}{% if reasoning_effort == 'max' %}(most){% elif reasoning_effort == 'high' %}"
    "(much){% endif %}<think>{% else %}</think>{% endif %}",
    "words that are looked up": "{% if thinking | default(true) %}{{ {'low': 'a', 'high': 'b', 'max': 'c'}"
    "[thinking_effort | default('max')] + '' }}{% endif %}" + _EACH + "{{ thinking }}",
    "a number": "{{ '%.1f' % (reasoning_effort | default(1)) }} of reasoning" + _EACH,
    "a number, and words are none": "{{ reasoning_effort | default(0.9) | float }} of reasoning"
    + _EACH,
    "a budget": "{% if thinking_budget is not defined %}{% set thinking_budget = -1 %}{% endif %}"
    "{% if thinking_budget == 0 %}(none){% elif thinking_budget > 0 %}({{ thinking_budget }}){% endif %}"
    + _EACH,
    "less effort": "{% if low_effort %}(briefly){% endif %}"
    + _EACH
    + "{% if enable_thinking | default(true) %}<think>{% else %}<think></think>{% endif %}",
    "ignores false": _EACH + "{% if enable_thinking | default(true, true) %}<think>{% endif %}",
    "overwrites it": "{% set enable_thinking = true %}"
    + _EACH
    + "{% if enable_thinking %}<think>{% endif %}",
    "words in messages": _EACH + "{% if '/no_think' in messages[0].content %}</think>{% endif %}",
    "always thinks": _EACH + "<think>\n",
    "never thinks": _EACH,
}


def switch_of(family: str) -> Switch:
    return find_facts(compiled(FAMILIES[family]), TOKENS).switch


def words(*levels: Effort) -> tuple[tuple[Effort, str], ...]:
    return tuple((level, level) for level in levels)


_LOW_TO_HIGH = words("low", "medium", "high")
_LOW_EFFORT: Levels = (("low", True), ("medium", False))
_BUDGETS: Levels = (("low", 512), ("medium", -1))
FOUND: Mapping[str, Switch] = {
    "closed pair when off": Switch("enable_thinking", True, False, "on", thinks=True),
    "opener when on": Switch("thinking", True, False, "off", thinks=True),
    "set where nobody did": Switch("thinking", True, False, "on", thinks=True),
    "three modes": Switch("thinking_mode", "enabled", "disabled", adaptive=True, thinks=True),
    "a word in the system turn": Switch("reasoning", True, False, "off", thinks=True),
    "without a system message only": Switch("thinking", True, False, "off", thinks=True),
    "any word is printed": Switch(
        level_key="reasoning_effort", levels=_LOW_TO_HIGH, numbers=True, thinks=True
    ),
    "two words, others are refused": Switch(
        "reasoning_effort", "high", "none", "off", "reasoning_effort", words("high"), thinks=True
    ),
    "no_think among the words": Switch(
        "reasoning_effort",
        "high",
        "no_think",
        "off",
        "reasoning_effort",
        words("low", "high"),
        thinks=True,
    ),
    "the lowest words close the thought": Switch(
        "reasoning_effort",
        "high",
        "minimal",
        "on",
        "reasoning_effort",
        words("minimal", "low", "medium", "high", "xhigh", "max"),
        thinks=True,
    ),
    "an opener for each effort": Switch(
        level_key="reasoning_effort", levels=_LOW_TO_HIGH, thinks=True
    ),
    "any word is printed, but one": Switch(
        "reasoning_effort",
        "high",
        "none",
        "on",
        "reasoning_effort",
        _LOW_TO_HIGH,
        numbers=True,
        thinks=True,
    ),
    "a switch and words": Switch(
        "thinking", True, False, "off", "reasoning_effort", words("high", "max"), thinks=True
    ),
    "words that are looked up": Switch(
        "thinking", True, False, "unknown", "thinking_effort", words("low", "high", "max"), thinks=True
    ),
    "a number": Switch(
        "reasoning_effort", 0.9, 0.0, "on", "reasoning_effort", DIAL, numbers=True, thinks=True
    ),
    "a number, and words are none": Switch(
        "reasoning_effort", 0.9, 0.0, "on", "reasoning_effort", DIAL, numbers=True, thinks=True
    ),
    "a budget": Switch(
        "thinking_budget", -1, 0, "on", "thinking_budget", _BUDGETS, "thinking_budget", thinks=True
    ),
    "less effort": Switch(
        "enable_thinking", True, False, "on", "low_effort", _LOW_EFFORT, thinks=True
    ),
    "ignores false": Switch(thinks=True),
    "overwrites it": Switch(thinks=True),
    "words in messages": Switch(thinks=True),
    "always thinks": Switch(thinks=True),
    "never thinks": Switch(),
}  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
def test_the_switch_of_a_template_is_found_by_asking_it(family: str) -> None:
    assert switch_of(family) == FOUND[family]


def effort(word: Effort) -> Thinking:
    return Thinking(word)


ALWAYS = "this model always thinks; it is told to think as little as it can"
DEAF = "this model cannot be told how much to think"
WISHES: list[tuple[str, Thinking, dict[str, Any], str]] = [
    # Only a switch.
    ("closed pair when off", Thinking(), {}, ""),
    ("closed pair when off", effort("none"), {"enable_thinking": False}, ""),
    ("closed pair when off", effort("minimal"), {"enable_thinking": False}, ""),
    ("closed pair when off", effort("low"), {"enable_thinking": True}, ""),
    ("opener when on", effort("max"), {"thinking": True}, ""),
    ("opener when on", Thinking(on=False), {"thinking": False}, ""),
    ("opener when on", Thinking("none", on=True), {"thinking": True}, ""),
    ("opener when on", Thinking("high", on=False), {"thinking": False}, ""),
    ("opener when on", Thinking(on=True, adaptive=True), {"thinking": True}, ""),
    # Modes.
    ("three modes", Thinking(on=True, adaptive=True), {"thinking_mode": "adaptive"}, ""),
    ("three modes", effort("none"), {"thinking_mode": "disabled"}, ""),
    ("three modes", effort("high"), {"thinking_mode": "enabled"}, ""),
    # Levels, and nothing to switch off.
    ("any word is printed", effort("none"), {"reasoning_effort": "low"}, ALWAYS),
    ("any word is printed", effort("minimal"), {"reasoning_effort": "low"}, ""),
    ("any word is printed", effort("medium"), {"reasoning_effort": "medium"}, ""),
    ("any word is printed", effort("max"), {"reasoning_effort": "high"}, ""),
    ("any word is printed", Thinking(on=True), {}, ""),
    # Levels of which one is off.
    ("two words, others are refused", effort("none"), {"reasoning_effort": "none"}, ""),
    ("two words, others are refused", effort("low"), {"reasoning_effort": "high"}, ""),
    ("two words, others are refused", Thinking(on=True), {"reasoning_effort": "high"}, ""),
    ("no_think among the words", effort("none"), {"reasoning_effort": "no_think"}, ""),
    ("no_think among the words", effort("medium"), {"reasoning_effort": "low"}, ""),
    ("the lowest words close the thought", effort("none"), {"reasoning_effort": "minimal"}, ""),
    ("the lowest words close the thought", effort("medium"), {"reasoning_effort": "medium"}, ""),
    ("the lowest words close the thought", Thinking(on=True), {}, ""),
    # Both.
    ("a switch and words", effort("none"), {"thinking": False}, ""),
    ("a switch and words", effort("minimal"), {"thinking": True, "reasoning_effort": "high"}, ""),
    ("a switch and words", effort("medium"), {"thinking": True, "reasoning_effort": "high"}, ""),
    ("a switch and words", effort("xhigh"), {"thinking": True, "reasoning_effort": "high"}, ""),
    ("a switch and words", Thinking(on=True), {"thinking": True}, ""),
    ("words that are looked up", effort("max"), {"thinking": True, "thinking_effort": "max"}, ""),
    ("less effort", effort("low"), {"enable_thinking": True, "low_effort": True}, ""),
    ("less effort", effort("high"), {"enable_thinking": True, "low_effort": False}, ""),
    # Numbers and budgets.
    ("a number", Thinking(number=0.4), {"reasoning_effort": 0.4}, ""),
    ("a number", effort("low"), {"reasoning_effort": 0.2}, ""),
    ("a number", effort("none"), {"reasoning_effort": 0.0}, ""),
    ("a number", Thinking(on=True), {}, ""),
    ("opener when on", Thinking(number=0.9), {"thinking": True}, "this model takes no effort as a number"),
    ("a budget", effort("none"), {"thinking_budget": 0}, ""),
    ("a budget", effort("low"), {"thinking_budget": 512}, ""),
    ("a budget", effort("high"), {"thinking_budget": -1}, ""),
    ("a budget", Thinking(on=True, budget=3000), {"thinking_budget": 3000}, ""),
    ("opener when on", Thinking(on=True, budget=3000), {"thinking": True}, "this model takes no budget for its thoughts"),
    # Nothing to be told.
    ("always thinks", effort("none"), {}, "this model's thoughts cannot be switched off"),
    ("always thinks", effort("high"), {}, DEAF),
    ("always thinks", Thinking(on=True), {}, ""),
    ("never thinks", effort("none"), {}, ""),
    ("never thinks", Thinking(on=False), {}, ""),
    ("never thinks", effort("high"), {}, DEAF),
    ("never thinks", Thinking(on=True), {}, DEAF),
]  # fmt: skip


@pytest.mark.parametrize(("family", "thinking", "variables", "unheeded"), WISHES)
def test_a_wish_becomes_variables_of_the_template(
    family: str, thinking: Thinking, variables: dict[str, Any], unheeded: str
) -> None:
    made = thinking_variables(thinking, switch_of(family))
    assert (made.variables, made.unheeded) == (variables, unheeded)


@pytest.mark.parametrize(
    ("wanted", "levels", "taken"),
    [
        ("none", ("low", "high"), "low"),
        ("low", ("high", "max"), "high"),
        ("medium", ("high", "max"), "high"),
        ("medium", ("low", "high"), "low"),
        ("high", ("max", "high", "low"), "high"),
        ("xhigh", ("low", "max"), "low"),
        ("max", ("low",), "low"),
    ],
)
def test_an_effort_is_the_nearest_level(
    wanted: Effort, levels: tuple[Effort, ...], taken: Effort
) -> None:
    assert nearest(wanted, levels) == taken


def rendered(
    template: str, prompt: ChatPrompt, **options: Any
) -> tuple[str, list[tuple[str, str]]]:
    warned: list[tuple[str, str]] = []

    def warn(what: str, parameter: str = "", /) -> None:
        warned.append((what, parameter))

    ours = renderer(template, **options)
    return ours.render(prompt, now=NOW, warn=warn), warned


def test_a_prompt_is_rendered_as_the_client_wants_the_model_to_think() -> None:
    template = FAMILIES["opener when on"]
    hi = (Turn("user", "Hi"),)
    assert rendered(template, ChatPrompt(hi)) == ("[user]Hi[answer]</think>", [])
    high = ChatPrompt(hi, thinking=Thinking("high"))
    assert rendered(template, high) == ("[user]Hi[answer]<think>", [])


def test_the_clients_own_variables_win() -> None:
    template = FAMILIES["opener when on"]
    prompt = ChatPrompt(
        (Turn("user", "Hi"),), thinking=Thinking("high"), kwargs={"thinking": False}
    )
    assert rendered(template, prompt) == ("[user]Hi[answer]</think>", [])


def test_what_is_not_heeded_is_told_unless_the_client_decides_itself() -> None:
    template = FAMILIES["any word is printed"]
    wish = Thinking("none", where="reasoning.effort")
    prompt = ChatPrompt((Turn("user", "Hi"),), thinking=wish)
    text, warned = rendered(template, prompt)
    assert text == "Reasoning: low[user]Hi[answer]"
    assert warned == [(ALWAYS, "reasoning.effort")]
    own = ChatPrompt((Turn("user", "Hi"),), thinking=wish, kwargs={"reasoning_effort": "high"})
    assert rendered(template, own) == ("Reasoning: high[user]Hi[answer]", [])


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("", Switch("enable_thinking", True, False, "on", thinks=True)),
        ("none", Switch(thinks=True)),
        ("deep", Switch("deep", True, False, "off", thinks=True)),
        ("thinking_mode", Switch("thinking_mode", "enabled", "disabled", thinks=True)),
        ("reasoning_effort", Switch(level_key="reasoning_effort", levels=_LOW_TO_HIGH, thinks=True)),
        ("low_effort", Switch(level_key="low_effort", levels=_LOW_EFFORT, thinks=True)),
        ("thinking_budget", Switch("thinking_budget", -1, 0, "unknown", "thinking_budget", _BUDGETS, "thinking_budget", thinks=True)),
    ],
)  # fmt: skip
def test_the_operator_knows_better(key: str, found: Switch) -> None:
    template = "{% if deep %}(deep){% endif %}" + FAMILIES["closed pair when off"]
    ours = renderer_of_texts({"default": template}, thinking_key=key)
    assert ours.facts().switch == found


def test_the_operators_word_is_for_the_models_own_template_only() -> None:
    ours = renderer_of_texts({"default": "d"}, thinking_key="none", allow_from_request=True)
    prompt = ChatPrompt(
        (Turn("user", "Hi"),), thinking=Thinking("none"), template=FAMILIES["opener when on"]
    )
    assert ours.render(prompt, now=NOW).endswith("</think>")
