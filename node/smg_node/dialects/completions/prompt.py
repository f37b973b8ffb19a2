"""Prompt of a Completions body in its four forms: text, texts, ids, lists of ids."""

from array import array
from typing import Any

from smg_node.core.generation.request import Prompt, TextPrompt, TokenPrompt
from smg_node.core.json_cursor import Cursor, kind_of, whole


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
    """Return ids as a prompt. Checked as a whole, because there may be a hundred thousand of them."""
    where = cursor.path(key, index)
    if set(map(type, values)) != {int}:
        numbers = list(map(whole, values))
        if None in numbers:
            at = numbers.index(None)
            message = f"must be a token id, not {kind_of(values[at])}"
            cursor.problems.add(f"{where}[{at}]", message, "invalid_type")
            return None
        values = numbers
    try:
        return TokenPrompt(array("I", values), where)
    except OverflowError:
        at = next(at for at, value in enumerate(values) if not 0 <= value < 2**32)
        cursor.problems.add(f"{where}[{at}]", "must be a token id: an integer in 0..4294967295")
        return None
