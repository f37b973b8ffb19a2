"""Grammar check: reads an EBNF or Lark grammar far enough to know that no engine could use it. Pure.

Engines take two notations: EBNF (`root ::= "a" | b`, as xgrammar and llama.cpp have it) and Lark
(`start: "a" | b`, as llguidance has it; vLLM rewrites simple ones). What a text is meant to be is seen
by its definitions. Refused is what all of them refuse: no rule, a string, set or group that is not
closed, a grammar without any text, nothing to repeat, a name that no rule has. What only one of them knows
(macros, attributes, parameters, nested grammars) is passed over. One step per token, no backtracking.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from smg_node.prompts.constraints.regex_size import PatternError, pattern_states

NESTING_MAX: Final = 64

_NAMED_MAX: Final = 64
"""Characters of a name that an error repeats."""
# A literal that is not closed ends the reading, so each token is looked at once.
_LITERALS: Final = r"""(?P<space>[ \t\r\n\f]+|\#[^\n]*|//[^\n]*)
    |(?P<string>"(?:\\.|[^"\\\n])*"i?|'(?:\\.|[^'\\\n])*'i?)
    |(?P<special><[^<>\s]+>)
    |(?P<directive>%[a-z_]+)
    |(?P<grammar>@[A-Za-z0-9_-]+)
    |(?P<arrow>->)
    |(?P<number>[+-]?[0-9]+(?:\.\.?[0-9]+)?)
    |(?P<name>[A-Za-z_.][A-Za-z0-9_.-]*)
    |(?P<assign>::=)"""
_EBNF_TOKEN: Final = re.compile(
    _LITERALS + r"|(?P<set>\[\^?(?:\\.|[^\]\\])*\])|(?P<other>.)", re.VERBOSE | re.DOTALL
)
_LARK_TOKEN: Final = re.compile(
    _LITERALS + r"|(?P<regex>/(?:\\.|[^/\\])+/[imslux]*)|(?P<other>.)", re.VERBOSE | re.DOTALL
)
# Signs that no notation of EBNF has outside of strings and sets.
_NO_EBNF: Final = frozenset(";:\\/$")
_UNCLOSED: Final = {'"': "a string", "'": "a string"}
_UNCLOSED_EBNF: Final = {**_UNCLOSED, "[": "a set of characters"}
_UNCLOSED_LARK: Final = {**_UNCLOSED, "/": "a regular expression"}
_OPEN: Final = {"(": ")", "[": "]", "{": "}"}
_CLOSE: Final = frozenset(_OPEN.values())
_LARK_RULE: Final = re.compile(
    r"^[ \t]*[!?]{0,2}(?P<name>_?[A-Za-z][\w-]*)"
    r"(?P<attributes>\[[^\]\n]*\])?(?:\.-?[0-9]+)?[ \t]*:(?![:=])",
    re.MULTILINE,
)
_COMMENT: Final = re.compile(r"(?:#|//)[^\n]*")
_LARK_IMPORT: Final = re.compile(
    r"^[ \t]*%(?:import|declare|override|extend)\b[^\n]*", re.MULTILINE
)
# Templates, rules with parameters and grammars in grammars: names in them are not looked up.
_LARK_SCOPES: Final = re.compile(r"::|@\{|^[ \t]*[!?]{0,2}_?[A-Za-z][\w-]*\{", re.MULTILINE)
_WORD: Final = re.compile(r"[A-Za-z_][\w-]*")

_decode_prefix: Final = json.JSONDecoder().raw_decode


class GrammarError(ValueError):
    """A grammar that no engine can use."""


def check_grammar(text: str) -> None:
    """Raise `GrammarError` unless `text` may be a grammar in a notation that some engine takes."""
    if not text.strip():
        raise GrammarError("it is empty")
    if text.lstrip().startswith("{"):
        _check_bundle(text)
    elif "::=" not in _COMMENT.sub("", text):
        _check_lark(text)
    else:
        try:
            _check_ebnf(text)
        except GrammarError:
            # A Lark grammar may have the sign in a string.
            if not _LARK_RULE.search(text):
                raise
            _check_lark(text)


def _check_bundle(text: str) -> None:
    """Check the JSON form: several grammars, each in Lark or a JSON Schema."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise GrammarError(f"it begins as JSON does, but is not: {error}") from error
    grammars = value.get("grammars")
    if not isinstance(grammars, list) or not grammars:
        raise GrammarError("as JSON, it needs a list of grammars under 'grammars'")
    for each in grammars:
        lark = each.get("lark_grammar") if isinstance(each, dict) else None
        if isinstance(lark, str):
            _check_lark(lark)


# ── EBNF ─────────────────────────────────────────────────────────────────────


def _check_ebnf(text: str) -> None:
    tokens = list(_tokens(text, _EBNF_TOKEN, _UNCLOSED_EBNF))
    for token in tokens:
        if token.kind == "other" and token.value in _NO_EBNF:
            raise GrammarError(f"{token.value!r} has no meaning in EBNF")
    starts = [_name_before(tokens, at) for at, token in enumerate(tokens) if token.kind == "assign"]
    if not starts:
        raise GrammarError("it has no rule")
    if starts[0]:
        raise GrammarError(f"{_shown(tokens[0].value)} stands before the first rule")
    defined: set[str] = set()
    used: dict[str, None] = {}
    for start, after in zip(starts, [*starts[1:], len(tokens)], strict=True):
        name = tokens[start].value
        defined.add(name)
        body = _Body(name)
        if name == "root" and tokens[-1].value == "::=" and len(starts) == 1:
            raise GrammarError("the rule 'root' is empty, so no text is allowed")
        body.read(tokens[_after_assign(tokens, start) : after])
        used |= body.names
    if "root" not in defined:
        raise GrammarError("it has no rule 'root', with which an EBNF grammar begins")
    _check_names(used, defined)


def _name_before(tokens: "list[_Token]", assign: int) -> int:
    """Return where the name of a rule stands: before its sign, and the attributes if it has any."""
    at = assign - 1
    if at > 0 and tokens[at].kind == "set":
        at -= 1
    if at < 0 or tokens[at].kind not in ("name", "number"):
        raise GrammarError("it has '::=' without a rule's name before it")
    return at


def _after_assign(tokens: "list[_Token]", start: int) -> int:
    return start + 2 if tokens[start + 1].kind == "assign" else start + 3


# ── Lark ─────────────────────────────────────────────────────────────────────


def _check_lark(text: str) -> None:
    rules = list(_LARK_RULE.finditer(text))
    scoped = _LARK_SCOPES.search(_COMMENT.sub("", text)) is not None
    if not rules and not scoped:
        raise GrammarError(
            "it has no rule; a rule is name ::= body in EBNF, and name: body in Lark"
        )
    defined = {rule["name"] for rule in rules}
    for line in _LARK_IMPORT.findall(text):
        defined.update(_WORD.findall(line))
    whole = _LARK_RULE.sub("|", _LARK_IMPORT.sub("", text))
    body = _Body("")
    body.read(list(_tokens(whole, _LARK_TOKEN, _UNCLOSED_LARK)))
    if not scoped:
        # To some, a name ends where its case changes.
        _check_names([name for name in body.names if name in (name.lower(), name.upper())], defined)


# ── Both ─────────────────────────────────────────────────────────────────────


def _check_names(used: Iterable[str], defined: set[str]) -> None:
    for name in used:
        # A dot may be a name's own or any character.
        parts = (name,) if name in defined else [part for part in name.split(".") if part]
        if not all(part in defined or part.isdecimal() for part in parts):
            raise GrammarError(f"it has no rule {_shown(name)}")


def _shown(text: str) -> str:
    return repr(text if len(text) <= _NAMED_MAX else text[: _NAMED_MAX - 1] + "…")


class _Token(NamedTuple):
    kind: str
    value: str


def _tokens(text: str, pattern: re.Pattern[str], unclosed: Mapping[str, str]) -> "Iterator[_Token]":
    """Yield all tokens but spaces; JSON that follows a directive is skipped, and must be JSON."""
    at = 0
    while at < len(text):
        found = pattern.match(text, at)
        assert found is not None
        kind, value = found.lastgroup or "", found.group()
        at = found.end()
        if kind == "other" and value in unclosed:
            raise GrammarError(f"{unclosed[value]} is not closed")
        if kind != "space":
            yield _Token(kind, value)
        if value in ("%json", "%regex", "%llguidance"):
            at = _json_end(text, at, value)


def _json_end(text: str, at: int, directive: str) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    try:
        return _decode_prefix(text, at)[1]
    except (ValueError, RecursionError) as error:
        raise GrammarError(f"{directive} is not followed by JSON: {error}") from error


class _Body:
    """What stands right of a rule's name, or all of a Lark grammar's bodies together (name "")."""

    def __init__(self, rule: str) -> None:
        self.names: dict[str, None] = {}
        self._place = f" in the rule {_shown(rule)}" if rule else ""
        self._open: list[str] = []
        # Depth of the group that is a macro's arguments; names in it need not be rules.
        self._macro: int | None = None
        self._before = ""

    def read(self, tokens: "list[_Token]") -> None:
        for at, (kind, value) in enumerate(tokens):
            if kind == "name":
                opens = at + 1 < len(tokens) and tokens[at + 1].value == "("
                self._name(value, opens=opens)
            elif kind == "regex":
                self._pattern(value)
            elif kind == "other":
                self._sign(value)
            self._before = value
        if self._open:
            raise GrammarError(f"{self._open[-1]!r} is missing{self._place}")

    def _name(self, value: str, *, opens: bool) -> None:
        if self._macro is not None or self._before == "->":
            return
        if opens and value[0].isupper() and not value.isupper():
            # TagDispatch(…) and its like: what a macro takes is its own affair.
            self._macro = len(self._open)
        elif value not in ("true", "false"):
            self.names.setdefault(value)

    def _pattern(self, value: str) -> None:
        pattern = value[1 : value.rindex("/")].replace("\\/", "/")
        try:
            pattern_states(pattern, in_schema=True)
        except PatternError as error:
            raise GrammarError(f"the regular expression {_shown(value)}: {error}") from error

    def _sign(self, value: str) -> None:
        if value in _OPEN:
            self._open.append(_OPEN[value])
            if len(self._open) > NESTING_MAX:
                raise GrammarError(f"it nests more than {NESTING_MAX} deep{self._place}")
        elif value in _CLOSE:
            if not self._open or self._open.pop() != value:
                raise GrammarError(f"{value!r} closes nothing{self._place}")
            if self._macro == len(self._open):
                self._macro = None
        elif value in "*+?" and self._before in ("", "|", "("):
            raise GrammarError(f"there is nothing before {value!r} to repeat{self._place}")
