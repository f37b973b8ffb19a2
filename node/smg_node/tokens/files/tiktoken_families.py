"""Tiktoken families: split pattern and special tokens of each published tiktoken vocabulary. Pure.

A *.tiktoken file holds ranks and nothing else. The split pattern and the special tokens live in the
code of each model's authors; these are the facts of the ones in use. A file belongs to a family by what
its neighbours say of it, else by its name, else by its exact number of ranks.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from smg_node.tokens.files.side_files import CONFIG, MODEL_CONFIG, SideFiles

_CONTRACTION: Final = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_TAIL: Final = r"\s*[\r\n]+|\s+(?!\S)|\s+"


def _words(number: str) -> str:
    """Return the pattern of Qwen and Llama 3; they differ in how many digits stay together."""
    letters = r"[^\r\n\p{L}\p{N}]?\p{L}+"
    signs = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
    return f"{_CONTRACTION}|{letters}|{number}|{signs}|{_TAIL}"


def _cased(without: str, signs: str) -> str:
    """Return the pattern of o200k and Kimi: words end where lower case turns to upper."""
    front = r"[^\r\n\p{L}\p{N}]?"
    upper = rf"[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}{without}]"
    lower = rf"[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}{without}]"
    ending = f"{_CONTRACTION}?"
    return (
        f"{front}{upper}*{lower}+{ending}|{front}{upper}+{lower}*{ending}"
        rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+{signs}*|{_TAIL}"
    )


_O200K: Final = _cased("", r"[\r\n/]")
_KIMI: Final = r"[\p{Han}]+|" + _cased(r"&&[^\p{Han}]", r"[\r\n]")
_CL100K: Final = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)


@dataclass(frozen=True, slots=True)
class Family:
    """One family. `specials(ranks)` are its special tokens above that many ranks.

    `roles` name some of them. `around` says whether a text asked for with special tokens begins with
    the `bos_token`. `run_max` is the longest run of characters without (or of only) white space that
    the authors' code hands over in one piece, 0 for no limit. `nfc`: text is composed first.
    """

    name: str
    pattern: str
    ranks: int
    specials: Callable[[int], Mapping[str, int]]
    roles: Mapping[str, str]
    around: bool = False
    nfc: bool = False
    run_max: int = 0


def _fixed(**tokens: int) -> Callable[[int], Mapping[str, int]]:
    return lambda ranks: {f"<|{name}|>": token_id for name, token_id in tokens.items()}


def _numbered(names: list[str]) -> Callable[[int], Mapping[str, int]]:
    return lambda ranks: {name: ranks + place for place, name in enumerate(names)}


def _reserved(prefix: str, first: int, end: int) -> list[str]:
    return [f"<|{prefix}reserved_special_token_{number}|>" for number in range(first, end)]


def _kimi(ranks: int) -> Mapping[str, int]:
    named = {ranks: "[BOS]", ranks + 1: "[EOS]", ranks + 2: "<|im_end|>"}
    return {
        named.get(token_id, reserved_kimi(token_id)): token_id
        for token_id in range(ranks, ranks + KIMI_RESERVED)
    }


def reserved_kimi(token_id: int) -> str:
    """Return the name Kimi gives to an id above the ranks that its files leave unnamed."""
    return f"<|reserved_token_{token_id}|>"


KIMI_RESERVED: Final = 256

_QWEN_NAMES: Final = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    *(f"<|extra_{number}|>" for number in range(205)),
]
_LLAMA3_NAMES: Final = [
    "<|begin_of_text|>",
    "<|end_of_text|>",
    *_reserved("", 0, 2),
    "<|finetune_right_pad_id|>",
    "<|step_id|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eom_id|>",
    "<|eot_id|>",
    "<|python_tag|>",
    *_reserved("", 2, 247),
]
_LLAMA4_NAMES: Final = [
    "<|begin_of_text|>",
    "<|end_of_text|>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<|header_start|>",
    "<|header_end|>",
    "<|eom|>",
    "<|eot|>",
    "<|step|>",
    *_reserved("text_post_train_", 0, 6),
    "<|python_start|>",
    "<|python_end|>",
    "<|finetune_right_pad|>",
    *_reserved("text_post_train_", 8, 69),
]

FAMILIES: Final[Mapping[str, Family]] = {
    family.name: family
    for family in (
        Family(
            "cl100k_base",
            _CL100K,
            100_256,
            _fixed(
                endoftext=100_257,
                fim_prefix=100_258,
                fim_middle=100_259,
                fim_suffix=100_260,
                endofprompt=100_276,
            ),
            {"eos_token": "<|endoftext|>"},
        ),
        Family(
            "o200k_base",
            _O200K,
            199_998,
            _fixed(endoftext=199_999, endofprompt=200_018),
            {"eos_token": "<|endoftext|>"},
        ),
        Family(
            "qwen",
            _words(r"\p{N}"),
            151_643,
            _numbered(_QWEN_NAMES),
            {"eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>"},
            nfc=True,
        ),
        Family(
            "llama3",
            _words(r"\p{N}{1,3}"),
            128_000,
            _numbered(_LLAMA3_NAMES),
            {"bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>"},
            around=True,
        ),
        Family(
            "llama4",
            _O200K,
            200_000,
            _numbered(_LLAMA4_NAMES),
            {"bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>"},
            around=True,
        ),
        Family(
            "kimi",
            _KIMI,
            163_584,
            _kimi,
            {"bos_token": "[BOS]", "eos_token": "[EOS]"},
            run_max=25_000,
        ),
    )
}

_CLASSES: Final = {"qwentokenizer": "qwen", "qwen2tokenizer": "qwen", "tiktokentokenizer": "kimi"}
_MODEL_TYPES: Final = {"qwen": "qwen", "llama4": "llama4", "llama4_text": "llama4"}


def family_of(side: SideFiles, file_name: str, ranks: int) -> Family | None:
    """Return the family of a ranks file, None for one of no known family."""
    model_type = side.word(MODEL_CONFIG, "model_type").lower()
    tokenizer_class = side.word(CONFIG, "tokenizer_class").lower().removesuffix("fast")
    name = _MODEL_TYPES.get(model_type) or _CLASSES.get(tokenizer_class)
    if name is None and model_type.startswith(("qwen", "kimi")):
        name = "qwen" if model_type.startswith("qwen") else "kimi"
    if name is None:
        stem = file_name.rpartition("/")[2].lower()
        name = next((known for known in FAMILIES if stem.startswith(known)), None)
    if name is None:
        name = next((known for known, it in FAMILIES.items() if it.ranks == ranks), None)
    return FAMILIES[name] if name is not None else None
