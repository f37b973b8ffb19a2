"""JSON members: places of the keys and values of one object in its bytes, and edits that keep all other bytes. Pure.

    members(body)                       each key with the places of its value
    edited(body, replaced, removed)     the same bytes but for those members

Nothing is parsed and written anew: numbers, order, escapes, white space and duplicates stay as they came. A key counts
where it means the same, however it is escaped; a key inside a nested object or a text never does.

The decoder finds how long each value is, and the members are walked along; where a key is there twice, which a decoder
does not tell, or the bytes are not all JSON, they are looked through token by token.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from smg_node.core.errors import SmgError, invalid

KEY_MAX_BYTES: Final = 4_096
"""A longer key is none that anybody asks for, and is not decoded."""

_BLANKS: Final = re.compile(rb"[ \t\r\n]*+")
_STRING: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_SCALAR: Final = re.compile(rb"[^ \t\r\n,:\]}\[{\"]++")
_NESTED: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|["\[\]{}]', re.DOTALL)
"""A string, or what opens or closes; a lone quote is a string without an end."""
_KEY: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"[ \t\r\n]*+:[ \t\r\n]*+', re.DOTALL)
_NEXT: Final = re.compile(rb"[ \t\r\n]*+(?:,[ \t\r\n]*+|(\}))")
"""What follows a value: a comma with the blanks around it, or the end of the object."""
_decode_key: Final = msgspec.json.Decoder(str).decode
_decode_values: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Member(NamedTuple):
    """One key of an object. `start` is the place of the key's first quote, `value` and `end` are those of its value."""

    key: str
    start: int
    value: int
    end: int


def members(body: bytes) -> Sequence[Member]:
    """Return the members of an object, duplicates included.

    INVALID_REQUEST `invalid_json` where there is no object. Values are passed over, and not always checked.
    """
    try:
        values = _decode_values(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _scanned(body)
    found = _walked(body, values)
    return _scanned(body) if found is None else found


def member(body: bytes, path: Sequence[str]) -> Member | None:
    """Return the member at `path`, the last one of a name; None where there is none.

    INVALID_REQUEST as `members`.
    """
    found: Member | None = None
    inner, offset = body, 0
    for key in path:
        if inner[_blanks_end(inner, 0) :][:1] != b"{":
            return None
        one = member_in(members(inner), key)
        if one is None:
            return None
        found = Member(one.key, one.start + offset, one.value + offset, one.end + offset)
        inner, offset = inner[one.value : one.end], found.value
    return found


def member_in(there: Sequence[Member], key: str) -> Member | None:
    """Return the last member of that name; None where there is none."""
    return next((one for one in reversed(there) if one.key == key), None)


def _walked(body: bytes, values: Mapping[str, msgspec.Raw]) -> Sequence[Member] | None:
    """Return the members, whose values are known; None where a key is there twice.

    Each step is over one whole member, because no value is the beginning of another one but for numbers, which other
    bytes follow. So as many steps as there are names, and no more bytes, mean that each name is there once.
    """
    found: list[Member] = []
    at = _opened(body, 0)
    for key, raw in values.items():
        spelled = _KEY.match(body, at)
        if spelled is None:
            return None
        value = spelled.end()
        text = bytes(raw)
        if not body.startswith(text, value):
            return None
        end = value + len(text)
        after = _NEXT.match(body, end)
        if after is None:
            return None
        found.append(Member(key, at, value, end))
        at = after.end()
        if after[1] is not None:
            return found if len(found) == len(values) else None
    return None if found else found


def _scanned(body: bytes) -> Sequence[Member]:
    """Return the members, found token by token; INVALID_REQUEST where there is no object."""
    at = _opened(body, 0)
    found: list[Member] = []
    if body[at : at + 1] == b"}":
        return found
    while True:
        one = _member(body, at)
        found.append(one)
        at = _blanks_end(body, one.end)
        mark = body[at : at + 1]
        if mark == b"}":
            return found
        if mark != b",":
            raise _broken(at)
        at = _blanks_end(body, at + 1)


def edited(
    body: bytes,
    replaced: Mapping[str, bytes],
    removed: Collection[str] = (),
    *,
    added: Mapping[str, bytes] | None = None,
    there: Sequence[Member] | None = None,
) -> bytes:
    """Return `body` with the values of `replaced`, without the members in `removed`, and with those of `added`.

    All occurrences of a key are replaced or removed. What is added stands first; a key of `added` that is there
    already is replaced where it is. Values are JSON. `there` are the members, if they are known. INVALID_REQUEST as
    `members`.
    """
    there = members(body) if there is None else there
    added = added or {}
    names = {one.key for one in there}
    values = {**replaced, **{key: value for key, value in added.items() if key in names}}
    pieces, at = [], _opened(body, 0)
    new = [
        msgspec.json.encode(key) + b":" + value for key, value in added.items() if key not in names
    ]
    pieces.append(body[:at])
    left = [one for one in there if one.key not in removed]
    if new:
        pieces.append(b",".join(new) + (b"," if left else b""))
    if there and not left:
        # Nothing stays: neither does what stood between.
        return b"".join(pieces) + body[there[-1].end :]
    for one, upto in _kept_spans(there, removed):
        value = values.get(one.key)
        if value is None:
            pieces.append(body[one.start : upto])
        else:
            pieces += (body[one.start : one.value], value, body[one.end : upto])
    tail = there[-1].end if there else at
    return b"".join(pieces) + body[tail:]


def _kept_spans(there: Sequence[Member], removed: Collection[str]) -> Sequence[tuple[Member, int]]:
    """Return the members that stay, each with where its bytes end: at the next one, or at its value's end if it is
    the last that stays.
    """
    spans: list[tuple[Member, int]] = []
    last = max((n for n, one in enumerate(there) if one.key not in removed), default=-1)
    for number, one in enumerate(there):
        if one.key not in removed:
            spans.append((one, one.end if number == last else there[number + 1].start))
    return spans


def _member(body: bytes, at: int) -> Member:
    key = _STRING.match(body, at)
    if key is None:
        raise _broken(at)
    colon = _blanks_end(body, key.end())
    if body[colon : colon + 1] != b":":
        raise _broken(colon)
    value = _blanks_end(body, colon + 1)
    return Member(_key(key[0], at), at, value, _value_end(body, value))


def _key(spelled: bytes, at: int) -> str:
    if len(spelled) > KEY_MAX_BYTES:
        return ""
    try:
        return _decode_key(spelled)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _broken(at) from None


def _value_end(body: bytes, at: int) -> int:
    mark = body[at : at + 1]
    if mark == b'"':
        whole = _STRING.match(body, at)
    elif mark in (b"{", b"["):
        return _nested_end(body, at)
    else:
        whole = _SCALAR.match(body, at)
    if whole is None:
        raise _broken(at)
    return whole.end()


def _nested_end(body: bytes, at: int) -> int:
    depth = 0
    for token in _NESTED.finditer(body, at):
        mark = body[token.start()]
        if mark in b"{[":
            depth += 1
        elif mark in b"}]":
            depth -= 1
            if depth == 0:
                return token.end()
        elif token.end() - token.start() == 1:
            raise _broken(token.start())
    raise _broken(len(body))


def _opened(body: bytes, start: int) -> int:
    """Return where the first member, or the closing brace, of an object is."""
    at = _blanks_end(body, start)
    if body[at : at + 1] != b"{":
        raise _broken(at)
    return _blanks_end(body, at + 1)


def _blanks_end(body: bytes, at: int) -> int:
    found = _BLANKS.match(body, at)
    assert found is not None, "it matches nothing, too"
    return found.end()


def _broken(at: int) -> SmgError:
    return invalid(f"the body is no JSON object: see byte {at}", code="invalid_json")
