r"""Forwarded certificate: reader of `x-forwarded-client-cert`, by which a proxy tells whose certificate it verified.

    x-forwarded-client-cert: By=spiffe://a;Hash=…;URI=spiffe://b, By=…;Subject="CN=web,O=acme";DNS=web.example

Each proxy on the way appends an element; elements are separated by commas, their pairs by semicolons, and a
value that holds any of these stands in double quotes, with `\\` before a quote or a backslash. Only the last
element is the word of the proxy that is believed: those before it came with the request. Source: Envoy's
documentation of this header; RFC 2253 and 4514 (the subject's text). Pure.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

HEADER: Final = "x-forwarded-client-cert"
TEXT_MAX: Final = 16_384
"""Longest header that is read; a chain in it makes a few KB."""
_NAME_MAX: Final = 512
_PAIRS_MAX: Final = 64
_KEYS: Final = frozenset({"by", "hash", "cert", "chain", "subject", "uri", "dns"})
_SPIFFE: Final = "spiffe://"
_HASH: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_HEX: Final = re.compile(r"[0-9A-Fa-f]{2}", re.ASCII)
_COMMON_NAME: Final = frozenset({"cn", "oid.2.5.4.3", "2.5.4.3"})


def forwarded_name(text: str) -> str | None:
    """Return the name of the certificate that the last element of the header is about; None where it tells of none,
    or is not written as it should be.

    The first of: a SPIFFE URI, another URI, a DNS name, the subject's common name, `hash:` and the
    certificate's digest in hexadecimal.
    """
    pairs = last_element(text)
    if pairs is None:
        return None
    uris = pairs.get("uri", ())
    if _is_odd(pairs, uris):
        return None
    names = [uri for uri in uris if uri.startswith(_SPIFFE)]
    names += [*uris, *pairs.get("dns", ())]
    for subject in pairs.get("subject", ()):
        common = common_name(subject)
        names += [common] if common else []
    names += [
        f"hash:{digest}"
        for digest in map(str.lower, pairs.get("hash", ()))
        if _HASH.fullmatch(digest)
    ]
    named = [name for name in names if name]
    if not named or len(named[0]) > _NAME_MAX or not _is_text(named[0]):
        return None
    return named[0]


def _is_odd(pairs: Mapping[str, Sequence[str]], uris: Sequence[str]) -> bool:
    """Whether names are there that no proxy tells so, and a name in the certificate may have brought with it.

    Envoy writes URIs and DNS names as they are, a `;` in them too: URIs come before DNS names, and a workload of
    SPIFFE has one.
    """
    if len(uris) > 1 and any(uri.startswith(_SPIFFE) for uri in uris):
        return True
    order = list(pairs)
    return "uri" in pairs and "dns" in pairs and order.index("dns") < order.index("uri")


def _is_text(name: str) -> bool:
    """Whether a name is text, and not bytes that are none."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def last_element(text: str) -> Mapping[str, Sequence[str]] | None:
    """Return the values of the last element by their names in lower case; None for a header that breaks the rules.

    A broken element before the last one breaks the header: nobody can tell where it ends.
    """
    if len(text) > TEXT_MAX:
        return None
    pairs: dict[str, list[str]] = {}
    count, at = 0, 0
    while True:
        found = _pair(text, at)
        if found is None:
            return None
        name, value, at = found
        if name:
            count += 1
            if count > _PAIRS_MAX or name not in _KEYS:
                return None
            pairs.setdefault(name, []).append(value)
        if at == len(text):
            return pairs
        if text[at] == ",":
            pairs, count = {}, 0
        at += 1


def common_name(subject: str) -> str:
    r"""Return the common name of a subject written as RFC 4514 has it, `CN=web,O=acme`; "" for none.

    Of several the one that stands first in the certificate, which is the last one here. Slashes between the
    attributes, as some programs write them, are not read: a value may hold one as well.
    """
    for attribute in reversed(_attributes(subject)):
        kind, equals, value = attribute.partition("=")
        if equals and kind.strip().lower() in _COMMON_NAME and not value.lstrip().startswith("#"):
            return _unescaped(value)
    return ""


def _attributes(subject: str) -> Sequence[str]:
    r"""Return the attributes of a subject, split where a `,`, `+` or `;` has no `\` before it."""
    found, begins, at = [], 0, 0
    while at < len(subject):
        if subject[at] == "\\":
            at += 1
        elif subject[at] in ",+;":
            found.append(subject[begins:at])
            begins = at + 1
        at += 1
    return [*found, subject[begins:]]


def _unescaped(value: str) -> str:
    r"""Return a value without its escapes: `\,` is a comma, `\C3\A9` the bytes of a letter."""
    said, at, value = bytearray(), 0, value.strip()
    while at < len(value):
        if value[at] == "\\":
            pair = value[at + 1 : at + 3]
            if _HEX.fullmatch(pair):
                said.append(int(pair, 16))
                at += 3
                continue
            at += 1
        said += value[at : at + 1].encode("utf-8", "surrogateescape")
        at += 1
    return said.decode("utf-8", "surrogateescape")


def _pair(text: str, at: int) -> tuple[str, str, int] | None:
    """Return the pair that begins at `at`, and where it ends: at a separator or at the end of the text.

    An empty one has no name; None for one that is not written as it should be.
    """
    end = _skip(text, at)
    if end == len(text) or text[end] in ";,":
        return "", "", end
    equals = text.find("=", end)
    if equals < 0:
        return None
    name, at = text[end:equals].strip().lower(), equals + 1
    if not name.isalpha():
        return None
    if text[at : at + 1] != '"':
        end = min(
            (found for found in (text.find(";", at), text.find(",", at)) if found >= 0),
            default=len(text),
        )
        value = text[at:end].strip()
        return None if '"' in value else (name, value, end)
    quoted = _quoted(text, at + 1)
    if quoted is None:
        return None
    value, at = quoted
    at = _skip(text, at)
    if at < len(text) and text[at] not in ";,":
        return None
    return name, value, at


def _quoted(text: str, at: int) -> tuple[str, int] | None:
    """Return the text in quotes whose first character is at `at`, and the place behind its closing quote."""
    said: list[str] = []
    while at < len(text):
        one = text[at]
        if one == '"':
            return "".join(said), at + 1
        if one == "\\" and text[at + 1 : at + 2] == '"':
            at += 1
            one = text[at]
        said.append(one)
        at += 1
    return None


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t":
        at += 1
    return at
