"""Prompt of a Completions body in its four forms: text, texts, ids, lists of ids."""

from array import array
from typing import Any, Final

from smg_node.core.generation.request import Prompt, TextPrompt, TokenPrompt
from smg_node.core.json_cursor import Cursor, kind_of, whole

_CHECKED_AT_ONCE: Final = 16_384


def read_prompts(
    cursor: Cursor, key: str, *, prompts_max: int, add_special_tokens: bool
) -> tuple[Prompt, ...]:
    """Return the prompts at `key`, one or many; what is wrong with them is noted."""
    value = cursor.raw(key, required=True)
    if value is None:
        return ()
    if type(value) is str:
        return (TextPrompt(value, add_special_tokens, cursor.path(key)),)
    if type(value) is not list:
        cursor.problem(
            key,
            f"must be a string, an array of strings, or an array of token ids, not {kind_of(value)}",
            "invalid_type",
        )
        return ()
    if not value:
        cursor.problem(key, "must not be empty")
        return ()
    if whole(value[0]) is not None:
        prompt = _ids(cursor, key, value, None)
        return () if prompt is None else (prompt,)
    if len(value) > prompts_max:
        cursor.problem(key, f"must have at most {prompts_max} elements, has {len(value)}")
        return ()
    if type(value[0]) is str:
        return _texts(cursor, key, value, add_special_tokens=add_special_tokens)
    return _id_lists(cursor, key, value)


def _texts(
    cursor: Cursor, key: str, values: list[Any], *, add_special_tokens: bool
) -> tuple[Prompt, ...]:
    texts = cursor.elements(key, str, "a string, as the first element is", values)
    return tuple(
        TextPrompt(text, add_special_tokens, cursor.path(key, index))
        for index, text in enumerate(texts or ())
    )


def _id_lists(cursor: Cursor, key: str, values: list[Any]) -> tuple[Prompt, ...]:
    prompts: list[Prompt] = []
    for index, ids in enumerate(values):
        if type(ids) is not list:
            cursor.problem(
                key, f"must be an array of token ids, not {kind_of(ids)}", "invalid_type", index
            )
        elif not ids:
            cursor.problem(key, "must not be empty", index=index)
        else:
            prompt = _ids(cursor, key, ids, index)
            if prompt is not None:
                prompts.append(prompt)
    return tuple(prompts)


def _ids(cursor: Cursor, key: str, values: list[Any], index: int | None) -> TokenPrompt | None:
    """Return ids as a prompt. Checked many at once, as there may be a million, but not all at once, which
    would stop every other thread.
    """
    where = cursor.path(key, index)
    ids = array("I")
    for begin in range(0, len(values), _CHECKED_AT_ONCE):
        part = values[begin : begin + _CHECKED_AT_ONCE]
        if set(map(type, part)) != {int}:
            numbers = list(map(whole, part))
            if None in numbers:
                at = numbers.index(None)
                message = f"must be a token id, not {kind_of(part[at])}"
                cursor.problems.add(f"{where}[{begin + at}]", message, "invalid_type")
                return None
            part = numbers
        try:
            ids.extend(array("I", part))
        except OverflowError:
            at = next(at for at, value in enumerate(part) if not 0 <= value < 2**32)
            message = "must be a token id: an integer in 0..4294967295"
            cursor.problems.add(f"{where}[{begin + at}]", message)
            return None
    return TokenPrompt(ids, where)
