"""One model's conversations as prompt text: which template, which variables, which errors."""

import dataclasses
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.request import ChatPrompt, ToolCall, ToolChoice, Turn
from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.prompts.jinja.chat_template import TemplateLimits
from smg_node.prompts.renderer import Renderer, RenderOptions, renderer_of
from support.models.hostile_templates import ENDLESS
from support.models.prompt_corpus import (
    CHATS,
    NOW,
    TIDE,
    noting,
    renderer,
    renderer_of_texts,
    source,
)

HELLO = ChatPrompt((Turn("user", "Hi"),))
SHOW = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"


def refusal(ours: Renderer, prompt: ChatPrompt) -> SmgError:
    with pytest.raises(SmgError) as raised:
        ours.render(prompt, now=NOW)
    return raised.value


def bundle(**files: str) -> TokenizerBundle:
    return TokenizerBundle(
        {k.replace("__", "."): v.encode() for k, v in files.items()}, "d", "here"
    )


def test_a_model_without_a_template_says_so() -> None:
    with pytest.raises(SmgError) as raised:
        renderer_of(bundle(), {}, configured=None, options=RenderOptions(), monotonic_s=lambda: 0.0)
    assert raised.value.kind is ErrorKind.INVALID_REQUEST
    assert "no chat template" in raised.value.message


def test_a_model_with_a_broken_template_is_our_fault_and_says_where() -> None:
    with pytest.raises(SmgError) as raised:
        renderer_of(
            bundle(chat_template__jinja="\n{% if %}"),
            {},
            configured=None,
            options=RenderOptions(),
            monotonic_s=lambda: 0.0,
        )
    assert (raised.value.kind, raised.value.code) == (ErrorKind.INTERNAL, "chat_template_broken")
    assert "line 2" in raised.value.message
    assert "chat_template.jinja" in raised.value.message


def test_the_template_is_the_default_one() -> None:
    ours = renderer_of_texts({"default": "d", "tool_use": "t"})
    assert ours.template.source == "d"
    assert renderer_of_texts({"tool_use": "t", "other": "o"}).template.source == "t"


def test_tools_and_documents_take_their_own_templates() -> None:
    ours = renderer_of_texts({"default": "d", "tool_use": "t", "rag": "r"})
    assert ours.render(HELLO, now=NOW) == "d"
    assert ours.render(replace(HELLO, tools=(TIDE,)), now=NOW) == "t"
    assert ours.render(replace(HELLO, documents=()), now=NOW) == "r"
    assert ours.render(replace(HELLO, tools=(TIDE,), documents=()), now=NOW) == "t"
    only_tools = renderer_of_texts({"tool_use": "t", "other": "o"})
    assert "other, tool_use" in refusal(only_tools, HELLO).message


def test_tools_and_documents_are_none_when_there_are_none() -> None:
    text = (
        "{{ tools is defined }}{{ tools is none }}{{ documents is defined }}{{ documents is none }}"
    )
    assert renderer(text).render(HELLO, now=NOW) == "TrueTrueTrueTrue"


def test_the_special_tokens_are_there_and_absent_ones_undefined() -> None:
    text = "{{ bos_token }}{{ eos_token }}{{ unk_token is defined }}"
    assert renderer(text).render(HELLO, now=NOW) == "<s></s>False"


def test_the_present_comes_from_outside() -> None:
    ours = renderer("{{ strftime_now('%Y-%m-%d') }}")
    assert ours.render(HELLO, now=datetime(2001, 2, 3, tzinfo=UTC)) == "2001-02-03"


def test_template_variables_of_the_request_reach_the_template() -> None:
    ours = renderer("{{ enable_thinking }}{{ thing.a }}")
    kwargs = {"enable_thinking": False, "thing": {"a": 1}}
    assert ours.render(replace(HELLO, kwargs=kwargs), now=NOW) == "False1"


@pytest.mark.parametrize(
    "name",
    ["messages", "tools", "documents", "add_generation_prompt", "bos_token", "unk_token", "_x",
     "strftime_now", "raise_exception", "range", "chat_template", "tokenize", "__class__"],
)  # fmt: skip
def test_the_renderers_own_names_cannot_be_set(name: str) -> None:
    error = refusal(renderer(SHOW), replace(HELLO, kwargs={name: 1}))
    assert error.kind is ErrorKind.INVALID_REQUEST
    assert error.where == f"chat_template_kwargs.{name}"


def test_too_many_variables_are_refused() -> None:
    assert renderer(SHOW).render(replace(HELLO, kwargs={f"a{i}": i for i in range(64)}), now=NOW)
    error = refusal(renderer(SHOW), replace(HELLO, kwargs={f"a{i}": i for i in range(65)}))
    assert error.where == "chat_template_kwargs"


def test_a_message_of_the_template_is_a_400_with_its_words() -> None:
    error = refusal(renderer("{{ raise_exception('Only odd days') }}"), HELLO)
    assert (error.kind, error.message, error.where) == (
        ErrorKind.INVALID_REQUEST,
        "Only odd days",
        "messages",
    )


@pytest.mark.parametrize(
    "text", ["{{ x.y }}", "{{ 1 + 'a' }}", "{{ 1 / 0 }}", "{{ messages[7].role }}", "{{ 5() }}"]
)
def test_a_template_that_fails_is_a_400_that_names_the_line(text: str) -> None:
    error = refusal(renderer("a\n" + text), replace(HELLO, where="prompts[1]"))
    assert error.kind is ErrorKind.INVALID_REQUEST
    assert error.where == "prompts[1]"
    assert "line 2" in error.message


def test_later_systems_are_told_by_the_user_only_if_the_template_refuses_them() -> None:
    turns = (Turn("system", "s"), Turn("user", "u"), Turn("system", "a"), Turn("developer", "b"))
    assert renderer(SHOW).render(ChatPrompt(turns), now=NOW) == "<system>s<user>u<system>a<system>b"
    strict = "{% for m in messages[1:] if m.role == 'system' %}{{ raise_exception('first!') }}{% endfor %}"
    assert renderer(strict + SHOW).render(ChatPrompt(turns), now=NOW) == (
        "<system>s<user>u\n<system-reminder>\na\n</system-reminder>"
        "\n<system-reminder>\nb\n</system-reminder>"
    )


def test_systems_at_the_front_are_merged_only_if_the_template_refuses_several() -> None:
    turns = (Turn("system", "a"), Turn("developer", "b"), Turn("user", "u"))
    assert renderer(SHOW).render(ChatPrompt(turns), now=NOW) == "<system>a<system>b<user>u"
    strict = "{% for m in messages[1:] if m.role == 'system' %}{{ raise_exception('first!') }}{% endfor %}"
    assert renderer(strict + SHOW).render(ChatPrompt(turns), now=NOW) == "<system>a\n\nb<user>u"


_MOVES = (
    "{% for m in messages if m.role == 'system' %}<system>{{ m.content }}{% endfor %}"
    "{% for m in messages if m.role != 'system' %}<{{ m.role }}>{{ m.content }}{% endfor %}"
)


def test_a_template_that_moves_later_systems_does_so_unless_they_are_to_stay() -> None:
    turns = (Turn("system", "s"), Turn("user", "u"), Turn("system", "a"))
    moving = renderer(_MOVES)
    assert not moving.facts().later_systems
    moved = moving.render(ChatPrompt(turns), now=NOW)
    assert moved == "<system>s<system>a<user>u"
    stays = ChatPrompt(turns, systems_stay=True)
    assert (
        moving.render(stays, now=NOW)
        == "<system>s<user>u\n<system-reminder>\na\n</system-reminder>"
    )
    assert moving.known(stays, now_ms=0) is None, "its form is that of the other prompt"
    assert moving.render(ChatPrompt(turns), now=NOW) == moved


def test_neighbours_are_merged_only_if_the_template_refuses_them() -> None:
    turns = (Turn("user", "a"), Turn("user", "b"))
    assert renderer(SHOW).render(ChatPrompt(turns), now=NOW) == "<user>a<user>b"
    strict = "{% if messages|length > 1 %}{{ raise_exception('in turn!') }}{% endif %}"
    assert renderer(strict + SHOW).render(ChatPrompt(turns), now=NOW) == "<user>a\n\nb"
    three = (*turns, Turn("assistant", "c"))
    assert refusal(renderer(strict + SHOW), ChatPrompt(three)).message == "in turn!"


_BOTH = (
    Turn("user", "When?"),
    Turn("assistant", "I look.", reasoning="Hm.", calls=(ToolCall("a", "f", "{}"),)),
)
_ONE_PLACE = (
    "{% for m in messages %}{% if m.tool_calls and m.content and m.thinking %}{{ raise_exception('both') }}"
    "{% endif %}<{{ m.role }}>{{ m.thinking }}|{{ m.content }}{% endfor %}"
)


def test_what_is_said_before_a_call_joins_its_thought_only_if_the_template_refuses_both() -> None:
    assert renderer(_ONE_PLACE).render(ChatPrompt(_BOTH), now=NOW) == (
        "<user>|When?<assistant>Hm.\n\nI look.|"
    )
    late = ChatPrompt((*_BOTH, Turn("system", "Rules.")))
    first = "{% if messages[-1].role == 'system' %}{{ raise_exception('late') }}{% endif %}"
    apart = _ONE_PLACE.replace("raise_exception('both')", "''")
    assert renderer(first + apart).render(late, now=NOW) == (
        "<user>|When?<assistant>Hm.|I look.<user>|<system-reminder>\nRules.\n</system-reminder>"
    )
    assert renderer(first + _ONE_PLACE).render(late, now=NOW) == (
        "<user>|When?<assistant>Hm.\n\nI look.|<user>|<system-reminder>\nRules.\n</system-reminder>"
    )


def test_ids_of_calls_have_the_form_that_the_family_wants() -> None:
    turns = (
        Turn("user", "When?"),
        Turn("assistant", None, calls=(ToolCall("call_1", "get_tide", "{}"),)),
        Turn("tool", "noon", answers_call="call_1"),
    )
    prompt = ChatPrompt(turns, tools=(TIDE,))
    assert "nine" in refusal(renderer(source("mistral")), prompt).message
    ours = renderer(source("mistral"), call_ids="mistral")
    assert ours.render(prompt, now=NOW).count("RksXkbv4v") == 2
    ours.name_calls("")
    assert "nine" in refusal(ours, prompt).message


def test_tools_are_shown_though_none_may_be_called() -> None:
    hidden = ChatPrompt(HELLO.turns, tools=(TIDE,), choice=ToolChoice("none"))
    text = renderer(source("chatml")).render(hidden, now=NOW)
    assert text == renderer(source("chatml")).render(replace(hidden, choice=ToolChoice()), now=NOW)
    assert "get_tide" in text


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        (ToolChoice(), ""),
        (ToolChoice("none"), "none"),
        (ToolChoice("required"), "required"),
        (ToolChoice("named", name="get_tide"), "required"),
    ],
)
def test_a_template_may_tell_its_model_which_tools_to_call(choice: ToolChoice, told: str) -> None:
    prompt = ChatPrompt(HELLO.turns, tools=(TIDE,), choice=choice)
    assert renderer("{{ tool_choice }}").render(prompt, now=NOW) == told
    assert renderer("{{ tool_choice }}").render(replace(prompt, tools=()), now=NOW) == ""


def test_the_first_complaint_is_the_one_that_is_told() -> None:
    text = "{{ raise_exception('complaint %d' % messages|length) }}"
    turns = (Turn("user", "a"), Turn("system", "b"), Turn("user", "c"))
    assert refusal(renderer(text), ChatPrompt(turns)).message == "complaint 3"


def test_parts_and_broken_arguments_are_warned_of() -> None:
    told: list[str] = []
    turns = (Turn("user", "x"), Turn("assistant", None, calls=(ToolCall("abcde1234", "f", "{"),)))
    text = renderer(source("chatml")).render(ChatPrompt(turns), now=NOW, warn=noting(told))
    assert '"arguments": {}' in text
    assert len(told) == 1


CONTINUED = ChatPrompt(
    (Turn("user", "Count"), Turn("assistant", "1, 2, ")),
    add_generation_prompt=False,
    continue_final_message=True,
)


def test_a_last_message_goes_on_where_it_ends() -> None:
    assert renderer(source("chatml")).render(CONTINUED, now=NOW).endswith("assistant\n1, 2, ")


def test_a_last_message_that_the_template_strips_goes_on_without_the_space() -> None:
    assert renderer(source("mistral")).render(CONTINUED, now=NOW).endswith("[/INST] 1, 2,")


def test_a_last_message_of_parts_goes_on_too() -> None:
    assert renderer(source("parts_only")).render(CONTINUED, now=NOW).endswith("<assistant>1, 2, ")


def test_a_last_message_goes_on_behind_its_thought() -> None:
    template = (
        "{% for m in messages %}<{{ m.role }}>{% if m.content is string %}{{ m.content }}{% else %}"
        "{% for p in m.content %}{% if p.type == 'thinking' %}({{ p.thinking }}){% else %}{{ p.text }}"
        "{% endif %}{% endfor %}{% endif %}{% endfor %}"
    )
    for content, end in (("1, 2, ", "1, 2, "), (None, "")):
        turns = (Turn("user", "Count"), Turn("assistant", content, reasoning="Hm."))
        text = renderer(template).render(replace(CONTINUED, turns=turns), now=NOW)
        assert text == "<user>Count<assistant>(Hm.)" + end


@pytest.mark.parametrize("content", [None, ""])
def test_an_empty_last_message_goes_on_from_its_beginning(content: str | None) -> None:
    prompt = replace(CONTINUED, turns=(Turn("user", "x"), Turn("assistant", content)))
    for name in ("chatml", "parts_only", "both_forms"):
        text = renderer(source(name)).render(prompt, now=NOW)
        assert text.rstrip().endswith(("assistant", "<assistant>"))


def test_text_that_contains_the_mark_is_no_trouble() -> None:
    turns = (Turn("user", "smgGoesOnHere x"), Turn("assistant", "a smgGoesOnHere b"))
    text = renderer(SHOW).render(replace(CONTINUED, turns=turns), now=NOW)
    assert text == "<user>smgGoesOnHere x<assistant>a smgGoesOnHere b"


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"add_generation_prompt": True}, "continue_final_message"),
        ({"turns": (Turn("user", "x"),)}, "continue_final_message"),
        ({"turns": ()}, "continue_final_message"),
        (
            {"turns": (Turn("assistant", "x", calls=(ToolCall("a", "f", "{}"),)),)},
            "continue_final_message",
        ),
    ],
)
def test_what_cannot_be_continued_is_refused(changes: dict[str, Any], where: str) -> None:
    error = refusal(renderer(SHOW), replace(CONTINUED, **changes))
    assert (error.kind, error.where) == (ErrorKind.INVALID_REQUEST, where)


def test_a_template_that_drops_the_last_message_cannot_continue_it() -> None:
    error = refusal(renderer("{{ messages[0].content }}"), CONTINUED)
    assert "does not print the last message" in error.message


def test_a_template_from_the_request_needs_permission() -> None:
    error = refusal(renderer(SHOW), replace(HELLO, template="mine"))
    assert (error.where, error.code) == ("chat_template", "unsupported_parameter")


def test_an_allowed_template_from_the_request_is_used_with_its_own_facts() -> None:
    ours = renderer(SHOW, allow_from_request=True)
    text = "{% for m in messages %}{% for p in m.content %}[{{ p.text }}]{% endfor %}{% endfor %}"
    for _ in range(2):
        assert ours.render(replace(HELLO, template=text), now=NOW) == "[Hi]"
    assert ours.render(HELLO, now=NOW) == "<user>Hi"


def test_a_template_may_be_asked_for_by_name() -> None:
    ours = renderer_of_texts({"default": "d", "tool_use": "t"}, allow_from_request=True)
    assert ours.render(replace(HELLO, template="tool_use"), now=NOW) == "t"


def test_only_so_many_templates_from_requests_are_remembered() -> None:
    ours = renderer(SHOW, allow_from_request=True)
    for number in range(40):
        assert ours.render(replace(HELLO, template=f"n{number}"), now=NOW) == f"n{number}"
    assert len(ours._brought) <= 32
    assert ours.render(replace(HELLO, template="n0"), now=NOW) == "n0"


@pytest.mark.parametrize("text", ["{% if %}", "x" * 70_000, "{{ 1|nothing }}", "{{x}}" * 12_000])
def test_a_bad_template_from_the_request_is_the_clients_fault(text: str) -> None:
    error = refusal(renderer(SHOW, allow_from_request=True), replace(HELLO, template=text))
    assert (error.kind, error.where) == (ErrorKind.INVALID_REQUEST, "chat_template")


def test_an_endless_template_from_the_request_is_the_clients_fault() -> None:
    limits = TemplateLimits(render_max_s=0.1)
    ours = renderer(SHOW, allow_from_request=True, limits=limits)
    text = ENDLESS["nested loops without output"]
    error = refusal(ours, replace(HELLO, template=text))
    assert (error.kind, error.where) == (ErrorKind.INVALID_REQUEST, "chat_template")


def test_an_endless_template_of_the_model_is_ours() -> None:
    ours = renderer(ENDLESS["nested loops without output"], limits=TemplateLimits(render_max_s=0.1))
    error = refusal(ours, HELLO)
    assert (error.kind, error.code) == (ErrorKind.INTERNAL, "chat_template_timeout")


def test_a_prompt_that_would_be_too_long_is_too_large() -> None:
    ours = renderer(SHOW, limits=TemplateLimits(output_max_bytes=1000))
    assert len(ours.render(ChatPrompt((Turn("user", "x" * 994),)), now=NOW)) == 1000
    error = refusal(ours, ChatPrompt((Turn("user", "x" * 995),)))
    assert (error.kind, error.where) == (ErrorKind.TOO_LARGE, "messages")


def test_half_a_surrogate_never_becomes_a_prompt() -> None:
    error = refusal(renderer(SHOW), ChatPrompt((Turn("user", "\ud83d"),)))
    assert error.kind is ErrorKind.INVALID_REQUEST
    error.message.encode()


def test_the_tools_of_a_later_request_are_not_those_of_an_earlier_one() -> None:
    ours = renderer(source("chatml"))
    for number in (1, 2, 1.0, True):
        tool = dataclasses.replace(TIDE, parameters={"type": "object", "default": number})
        text = ours.render(replace(CHATS["tools"], tools=(tool,)), now=NOW)
        assert f'"default": {str(number).lower()}' in text
    huge = dataclasses.replace(TIDE, parameters={"default": 2**70})
    assert str(2**70) in ours.render(replace(CHATS["tools"], tools=(huge,)), now=NOW)
