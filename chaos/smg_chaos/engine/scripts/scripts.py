"""Scripts of simulated engines: the rules by which a prompt gets its answer.

A script turns a prompt into an `Answer`: ids that never run out, so that an engine told to ignore
the end of text continues like a real one. Where the answer ends is not the script's business; the
end-of-text id is simply part of it.
"""

import json
import random
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

from smg_chaos.engine.nearest import unknown_name
from smg_chaos.engine.protocol.answers import Answer, Following
from smg_chaos.engine.protocol.generate_request import Asked
from smg_chaos.engine.protocol.prompt_ids import Lately
from smg_chaos.engine.scripts.bundle import Bundle
from smg_chaos.engine.scripts.calls_once import CallsOnce

_ANSWERS_KEPT: Final = 256
_RANDOM_LENGTH: Final = 1024

TEXTS: Final = {
    "fixed": "Hello from a simulated engine: six quick zebras jump over one lazy dog, café 🙂 and 你好!",
    "tool-call": 'Let me look.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n'
    "</tool_call>",
    "reasoning": "<think>\nThe question asks for a number. Let me think about it.\n</think>\n"
    "The answer is 42.",
    "split-utf8": "A parrot 🦜, a family 👩‍👩‍👧, an arrow → and straẞe: 你好, мир, ñandú.",
}
_ANY_LENGTH: Final = "any-length"
_LENGTHS: Final = (4, 60, 600)
"""Tokens of an answer of any length: at least, how many more on average, and at most. Most are short, and some
are ten times as long as the others."""
_LENGTH_MAX: Final = 1_000_000

_CALLS_ONCE: Final = "calls-once"
_ECHO: Final = 'echo {"text": "six quick zebras"}'
"""What is called if nothing is named: every server of tools on purpose has it."""

NAMES: Final = (
    *TEXTS,
    "echo",
    "random",
    "endless",
    _ANY_LENGTH,
    "following",
    "pictures",
    _CALLS_ONCE,
)


class Script(Protocol):
    """Source of answers."""

    def answer(self, prompt: Sequence[int], seed: int, choice: int) -> Answer:
        """Return the answer of one choice; the same arguments give the same answer."""
        ...


class Fixed:
    """The same ids every time; if the prompt ends with the first of them, the others."""

    def __init__(self, ids: Sequence[int], eos: int, *, tool: bool = False) -> None:
        body = tuple(ids)
        self._answer = Answer((*body, eos), body or (0,), tool)
        self._after: Lately[Answer] = Lately()

    def answer(self, prompt: Sequence[int], seed: int, choice: int) -> Answer:
        """Return the ids and then the end of text."""
        return self._after.of(prompt, self._answer.after)


class Endless:
    """The same ids for ever; only a limit ends it. After a prompt that ends with them it continues
    from there.
    """

    def __init__(self, ids: Sequence[int]) -> None:
        self._answer = Answer((), tuple(ids))
        self._after: Lately[Answer] = Lately()

    def answer(self, prompt: Sequence[int], seed: int, choice: int) -> Answer:
        """Return the ids, repeated."""
        return self._after.of(prompt, self._answer.after)


class AnyLength:
    """The ids of the endless answer, with an end that cannot be predicted: it follows from the seed
    alone.

    `lengths`: how many there are at least, how many more on average, and how many at most.
    """

    def __init__(
        self, ids: Sequence[int], eos: int, lengths: tuple[int, int, int] = _LENGTHS
    ) -> None:
        self._ids = tuple(ids)
        self._eos = eos
        self._lengths = lengths

    def answer(self, prompt: Sequence[int], seed: int, choice: int) -> Answer:
        """Return a few ids or many, and then the end of text."""
        least, more, most = self._lengths
        said = random.Random(f"{seed}/{choice}").expovariate(1 / more)
        length = min(most, least + int(said))
        turns = length // len(self._ids) + 1
        whole = Answer((*(self._ids * turns)[:length], self._eos), self._ids)
        return whole.after(prompt)


class Echo:
    """The prompt, then the end of text."""

    def __init__(self, eos: int) -> None:
        self._eos = eos

    def answer(self, prompt: Sequence[int], seed: int, choice: int) -> Answer:
        """Return the prompt's own ids."""
        body = tuple(prompt) or (self._eos,)
        return Answer((*body, self._eos), body)


class Random:
    """Seeded random bytes that never end by themselves."""

    def __init__(self, below: int, avoid: frozenset[int]) -> None:
        self._ids = [token for token in range(below) if token not in avoid]
        self._kept: OrderedDict[tuple[int, int], Answer] = OrderedDict()

    def answer(self, prompt: Sequence[int], seed: int, choice: int) -> Answer:
        """Return ids drawn from the whole vocabulary, from `seed` and `choice` alone."""
        key = (seed, choice)
        answer = self._kept.get(key)
        if answer is None:
            rng = random.Random(f"{seed}/{choice}")
            answer = Answer((), tuple(rng.choices(self._ids, k=_RANDOM_LENGTH)))
            self._kept[key] = answer
            if len(self._kept) > _ANSWERS_KEPT:
                self._kept.popitem(last=False)
        return answer


class Pictures:
    """The number of pictures, and eight digits of what each of them is: it tells whether the right ones came."""

    def __init__(self, bundle: Bundle, eos: int) -> None:
        self._bundle = bundle
        self._eos = eos

    def answer(self, prompt: Sequence[int], seed: int, choice: int) -> Answer:
        """Return that there is none."""
        return self.seeing(()).answer(prompt, seed, choice)

    def seeing(self, pictures: Sequence[str]) -> "Fixed":
        """Return the script of a request with these pictures, by their digests."""
        text = "I see no picture."
        if pictures:
            named = ", ".join(one[:8] for one in pictures)
            text = f"I see {len(pictures)}: {named}."
        return Fixed(self._bundle.encode(text), self._eos)


def answer_to(script: Script, asked: Asked) -> Script:
    """Return the script for a request: one that looks at pictures sees those of the request."""
    return script.seeing(asked.pictures) if isinstance(script, Pictures) else script


class Continuing:
    """Ids that each follow from all before them, prompt and answer alike, as in a model at
    temperature 0.

    An engine that is given the prompt and the beginning of an answer therefore generates the rest
    of that answer, and something else if one id is missing, double or wrong. Choices are alike.
    Never ends by itself.
    """

    def __init__(self, ids: Sequence[int]) -> None:
        self._ids = tuple(sorted(set(ids)))

    def answer(self, prompt: Sequence[int], seed: int, choice: int) -> Answer:
        """Return the ids that follow from the prompt."""
        return Following(prompt, self._ids)


def script_of(name: str, bundle: Bundle) -> Script:
    """Return the script called `name`, or the one in the file `name`.

    A file that ends in `.ids` or `.json` holds token ids (a JSON list, or numbers between blanks and
    commas), any other holds text. `any-length:LEAST,MORE,MOST` has lengths of its own, in tokens: at least, so
    many more on average, at most. `calls-once:TOOL ARGUMENTS` calls a tool, and says a text when it has its
    result. ValueError names the nearest known script.
    """
    eos = bundle.eos_ids[0] if bundle.eos_ids else 0
    if name in TEXTS:
        return Fixed(bundle.encode(TEXTS[name]), eos, tool=name == "tool-call")
    if name == "pictures":
        return Pictures(bundle, eos)
    if name == "echo":
        return Echo(eos)
    if name == "endless":
        return Endless(bundle.encode(TEXTS["fixed"] + " "))
    said, _, lengths = name.partition(":")
    if said == _CALLS_ONCE:
        call = _ECHO if name == _CALLS_ONCE else lengths
        tool, _, arguments = call.partition(" ")
        return CallsOnce(bundle, eos, tool, arguments)
    if said == _ANY_LENGTH:
        return AnyLength(bundle.encode(TEXTS["fixed"] + " "), eos, _lengths(name, lengths))
    if name == "following":
        return Continuing(bundle.encode(TEXTS["fixed"] + " " + TEXTS["split-utf8"]))
    if name == "random":
        return Random(bundle.size, frozenset((*bundle.eos_ids, *bundle.further_eos_ids)))
    path = Path(name)
    if not path.is_file():
        raise ValueError(unknown_name("script", name, NAMES) + ", and no such file exists")
    text = path.read_text(encoding="utf-8")
    if path.suffix in (".ids", ".json"):
        return Fixed(_read_ids(text, path), eos)
    return Fixed(bundle.encode(text), eos)


def _lengths(name: str, text: str) -> tuple[int, int, int]:
    """Return what stands behind the name of an answer of any length."""
    if name == _ANY_LENGTH:
        return _LENGTHS
    words = text.split(",")
    if len(words) == 3 and all(word.isascii() and word.isdigit() for word in words):
        least, more, most = map(int, words)
        if more >= 1 and least <= most <= _LENGTH_MAX:
            return least, more, most
    raise ValueError(
        f"{name}: say {_ANY_LENGTH}:LEAST,MORE,MOST in tokens, as in {_ANY_LENGTH}:4,60,600"
    )


def _read_ids(text: str, path: Path) -> list[int]:
    try:
        ids = (
            json.loads(text)
            if text.lstrip().startswith("[")
            else [int(word) for word in text.replace(",", " ").split()]
        )
    except ValueError as error:
        raise ValueError(f"{path} does not hold token ids: {error}") from error
    if not isinstance(ids, list) or not all(type(token) is int and token >= 0 for token in ids):
        raise ValueError(f"{path} does not hold a list of token ids")
    return ids
