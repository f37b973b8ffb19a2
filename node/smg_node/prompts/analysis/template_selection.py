"""Template selection: finds the chat templates of a model, and chooses one of them for a request.
Pure.

In this order: what the operator configured; `chat_template.jinja` beside the checkpoint; the tokenizer
configuration, one text or a list of named ones; the old `chat_template.json`. Further named templates
lie in `additional_chat_templates/`. A configured template stands alone: the checkpoint's `tool_use`
does not come in beside it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.tokenizer_bundle import TokenizerBundle

_FILE: Final = "chat_template.jinja"
_OLD_FILE: Final = "chat_template.json"
_CONFIGURATION: Final = "tokenizer_config.json"
_FOLDER: Final = "additional_chat_templates/"
_SUFFIX: Final = ".jinja"


@dataclass(frozen=True, slots=True)
class TemplateTexts:
    """Named template texts; `default` and `tool_use` are the names that matter. `origin` is for logs."""

    texts: Mapping[str, str] = field(default_factory=dict)
    origin: str = ""

    def choose(self, *, tools: bool, documents: bool) -> str | None:
        """Return the name of the template for a request, None if there is none for it."""
        if tools and "tool_use" in self.texts:
            return "tool_use"
        if documents and "rag" in self.texts:
            return "rag"
        return "default" if "default" in self.texts else None


def find_templates(bundle: TokenizerBundle, configured: str | None) -> TemplateTexts:
    """Return the templates of a model; none at all is an answer too.

    Raises INTERNAL `chat_template_broken` for a file that should hold one and cannot be read.
    """
    if configured is not None:
        return TemplateTexts({"default": configured}, "configuration")
    named: dict[str, str] = {}
    origin = ""
    if _FILE in bundle.files:
        named["default"] = _text(bundle, _FILE)
        origin = _FILE
    else:
        for file in (_CONFIGURATION, _OLD_FILE):
            named = _named(bundle, file)
            if named:
                origin = file
                break
    for name in sorted(bundle.files):
        if name.startswith(_FOLDER) and name.endswith(_SUFFIX):
            named.setdefault(name[len(_FOLDER) : -len(_SUFFIX)], _text(bundle, name))
            origin = origin or _FOLDER
    if len(named) == 1:
        (only,) = named.values()
        named = {"default": only}
    return TemplateTexts(named, origin)


def _named(bundle: TokenizerBundle, file: str) -> dict[str, str]:
    raw = bundle.files.get(file)
    if raw is None:
        return {}
    try:
        found = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _broken(bundle, file, str(error)) from error
    template = found.get("chat_template") if isinstance(found, dict) else None
    match template:
        case None:
            return {}
        case str():
            return {"default": template}
        case list():
            return dict(_entry(bundle, file, entry) for entry in template)
        case dict() if all(isinstance(text, str) for text in template.values()):
            return dict(template)
        case _:
            raise _broken(bundle, file, "chat_template is neither a text nor a list of texts")


def _entry(bundle: TokenizerBundle, file: str, entry: Any) -> tuple[str, str]:
    match entry:
        case {"name": str(name), "template": str(text)}:
            return name, text
        case _:
            raise _broken(bundle, file, "an entry of chat_template has no name or no template")


def _text(bundle: TokenizerBundle, file: str) -> str:
    try:
        return bundle.files[file].decode()
    except UnicodeDecodeError as error:
        raise _broken(bundle, file, "it is not UTF-8") from error


def _broken(bundle: TokenizerBundle, file: str, why: str) -> SmgError:
    return SmgError(
        ErrorKind.INTERNAL,
        f"the chat template in {file} of {bundle.origin} cannot be read: {why}",
        code="chat_template_broken",
    )
