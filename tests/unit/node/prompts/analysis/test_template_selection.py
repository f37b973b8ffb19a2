"""Which template a model has."""

import json

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.prompts.analysis.template_selection import TemplateTexts, find_templates


def found(files: dict[str, object], configured: str | None = None) -> TemplateTexts:
    raw = {
        name: content if isinstance(content, bytes)
        else content.encode() if isinstance(content, str)
        else json.dumps(content).encode()
        for name, content in files.items()
    }  # fmt: skip
    return find_templates(TokenizerBundle(raw, "digest", "there"), configured)


ALL: dict[str, object] = {
    "chat_template.jinja": "file",
    "tokenizer_config.json": {"chat_template": "config"},
    "chat_template.json": {"chat_template": "old"},
    "additional_chat_templates/tool_use.jinja": "tools",
}


def test_a_configured_template_stands_alone() -> None:
    assert found(ALL, "mine").texts == {"default": "mine"}


def test_the_file_beside_the_checkpoint_comes_before_its_configuration() -> None:
    assert found(ALL).texts == {"default": "file", "tool_use": "tools"}


def test_the_tokenizer_configuration_comes_before_the_old_file() -> None:
    texts = found({name: ALL[name] for name in ("tokenizer_config.json", "chat_template.json")})
    assert (texts.texts, texts.origin) == ({"default": "config"}, "tokenizer_config.json")
    assert found({"chat_template.json": ALL["chat_template.json"]}).texts == {"default": "old"}


def test_a_list_of_named_templates_is_taken_by_name() -> None:
    entries = [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]
    texts = found({"tokenizer_config.json": {"chat_template": entries}})
    assert texts.texts == {"default": "d", "tool_use": "t"}


def test_a_single_template_is_the_default_whatever_its_name() -> None:
    entries = [{"name": "chat", "template": "c"}]
    assert found({"tokenizer_config.json": {"chat_template": entries}}).texts == {"default": "c"}
    assert found({"additional_chat_templates/rag.jinja": "r"}).texts == {"default": "r"}


@pytest.mark.parametrize("config", [{}, {"chat_template": None}, [], 5])
def test_no_template_is_an_answer(config: object) -> None:
    assert found({"tokenizer_config.json": config}).texts == {}
    assert found({}).texts == {}


@pytest.mark.parametrize(
    "files",
    [
        {"tokenizer_config.json": b"{"},
        {"tokenizer_config.json": b"\xff\xfe"},
        {"tokenizer_config.json": {"chat_template": 5}},
        {"tokenizer_config.json": {"chat_template": [{"name": "x"}]}},
        {"tokenizer_config.json": {"chat_template": {"default": 1}}},
        {"chat_template.jinja": b"\xff"},
    ],
)
def test_a_file_that_cannot_be_read_is_named(files: dict[str, object]) -> None:
    with pytest.raises(SmgError) as raised:
        found(files)
    assert (raised.value.kind, raised.value.code) == (ErrorKind.INTERNAL, "chat_template_broken")
    assert next(iter(files)) in raised.value.message


def test_a_request_takes_the_template_made_for_it() -> None:
    texts = TemplateTexts({"default": "", "tool_use": "", "rag": ""})
    assert texts.choose(tools=True, documents=True) == "tool_use"
    assert texts.choose(tools=False, documents=True) == "rag"
    assert texts.choose(tools=False, documents=False) == "default"
    assert TemplateTexts({"rag": "", "x": ""}).choose(tools=True, documents=False) is None
