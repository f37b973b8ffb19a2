"""Documents of many kinds, the same in every process: what people and programs really send.

Source files of Python's own library come first in turn, so that there is text nobody invented here.
"""

import json
import random
import sysconfig
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

_WORDS = {
    "english": "the of and to in model token cluster gateway it's don't we'll request latency",
    "german": "der die das größer Straße über Verfügbarkeit Schlüssel weiß fünf Maßnahme",
    "french": "l’été où cœur déjà naïve être façade aujourd'hui où ça élève forêt",
    "russian": "привет мир кластер запрос это ещё модель ответ быстро ночь",
    "greek": "καλημέρα κόσμε αίτημα απάντηση μοντέλο ώρα",
    "arabic": "مرحبا العالم نموذج طلب سريع الذكاء ١٢٣ لغة",
    "hebrew": "שלום עולם מודל בקשה מהיר שָׁלוֹם",
    "hindi": "नमस्ते दुनिया मॉडल अनुरोध क्षमता ज़रूरत १२३",
    "thai": "สวัสดี ชาวโลก โมเดล คำขอ รวดเร็ว",
    "korean": "안녕하세요 세계 모델 요청 빠른 응답",
    "japanese": "こんにちは 世界 モデル リクエスト 速い応答、 です。",
    "chinese": "你好 世界 模型 请求 快速响应， 分布式 網關 測試。",
    "vietnamese": "xin chào thế giới mô hình yêu cầu nhanh Ồ ệ",
}
WORDS = {language: words.split(" ") for language, words in _WORDS.items()}
_EMOJI = "😀 👍🏽 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 ❤️ #️⃣ 🫠 ☺︎ 🎉 🧪"
EMOJI = _EMOJI.split(" ")
SPECIALS = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")


def documents(count: int, *, seed: int = 20_261_001) -> Iterator[str]:
    """Yield `count` documents, up to about 4,000 characters each."""
    rng = random.Random(seed)
    kinds = _kinds()
    for number in range(count):
        yield kinds[number % len(kinds)](rng)


def prose(count: int, *, seed: int = 7) -> Iterator[str]:
    """Yield `count` texts in the languages of `WORDS`: few enough characters to train on."""
    rng = random.Random(seed)
    for _ in range(count):
        yield _mixed(rng)


def long_prompt(characters: int) -> str:
    """Return source code and prose of that length: about 8,000 tokens at 38,000."""
    text = "\n".join(_sources())
    return text[1000 : 1000 + characters]


@cache
def _sources() -> list[str]:
    folder = Path(sysconfig.get_paths()["stdlib"])
    found = [path.read_text("utf-8", "replace") for path in sorted(folder.glob("*.py"))]
    return [text for text in found if len(text) > 2000]


def _kinds() -> list[Callable[[random.Random], str]]:
    return [
        _source,
        _prose,
        _mixed,
        _conversation,
        _source,
        _json,
        _emoji,
        _controls,
        _ideographs,
        _spaces,
        _numbers,
        _markdown,
        _anything,
        _borders,
        _repeated,
        _shuffled,
    ]


def _source(rng: random.Random) -> str:
    text = rng.choice(_sources())
    start = rng.randrange(len(text) - 500)
    return text[start : start + rng.randrange(100, 4000)]


def _sentence(rng: random.Random, language: str) -> str:
    words = rng.choices(WORDS[language], k=rng.randrange(3, 15))
    return " ".join(words) + rng.choice([".", "!", "?", "…", ";", ",", ":\n"])


def _prose(rng: random.Random) -> str:
    language = rng.choice(sorted(WORDS))
    joint = rng.choice([" ", "\n", "  ", "\n\n", ""])
    return joint.join(_sentence(rng, language) for _ in range(rng.randrange(1, 25)))


def _mixed(rng: random.Random) -> str:
    return " ".join(_sentence(rng, rng.choice(sorted(WORDS))) for _ in range(rng.randrange(1, 12)))


def _conversation(rng: random.Random) -> str:
    turns = []
    for place in range(rng.randrange(1, 8)):
        role = ("system", "user", "assistant")[min(place, 1 + place % 2)]
        turns.append(f"<|im_start|>{role}\n{_mixed(rng)}<|im_end|>\n")
    return "".join(turns) + "<|im_start|>assistant\n"


def _json(rng: random.Random) -> str:
    value = {
        rng.choice(WORDS["english"]): [
            rng.random(),
            rng.getrandbits(70),
            None,
            _sentence(rng, "greek"),
        ]
        for _ in range(rng.randrange(1, 9))
    }
    return json.dumps(value, indent=rng.choice([None, 1, 2, 4]), ensure_ascii=rng.random() < 0.5)


def _emoji(rng: random.Random) -> str:
    return rng.choice(["", " ", "\n"]).join(
        rng.choice(EMOJI) if rng.random() < 0.6 else rng.choice(WORDS["english"])
        for _ in range(rng.randrange(1, 80))
    )


def _controls(rng: random.Random) -> str:
    alphabet = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA1), 0x200B, 0x202E, 0xFEFF)]
    return "".join(
        rng.choice(alphabet) if rng.random() < 0.5 else rng.choice("ab 1.é中")
        for _ in range(rng.randrange(1, 200))
    )


def _ideographs(rng: random.Random) -> str:
    return "".join(
        chr(rng.randrange(0x4E00, 0x9FFF)) if rng.random() < 0.9 else rng.choice("，。 \n aア가")
        for _ in range(rng.randrange(1, 400))
    )


def _spaces(rng: random.Random) -> str:
    return "".join(
        rng.choice([" ", "  ", "\n", "\t", "\r\n", "\u00a0", "\u3000", "        ", "\n\n\n"])
        if rng.random() < 0.7
        else rng.choice(["x", "def", "}", "9", "ß"])
        for _ in range(rng.randrange(1, 120))
    )


def _numbers(rng: random.Random) -> str:
    return rng.choice([" ", ",", "\t", ""]).join(
        rng.choice(
            [str(rng.getrandbits(40)), f"{rng.random():.6f}", hex(rng.getrandbits(32)), "½٣Ⅷ"]
        )
        for _ in range(rng.randrange(1, 60))
    )


def _markdown(rng: random.Random) -> str:
    return (
        f"# {_sentence(rng, 'german')}\n\n- **{rng.choice(EMOJI)}** `x = {rng.random()}`\n"
        f"\n```python\n{_source(rng)[:300]}\n```\n\n| a | b |\n|---|---|\n| 1 | {_sentence(rng, 'thai')} |\n"
    )


def _anything(rng: random.Random) -> str:
    codes = (rng.randrange(0x110000) for _ in range(rng.randrange(1, 150)))
    return "".join(chr(code) for code in codes if not 0xD800 <= code < 0xE000)


def _borders(rng: random.Random) -> str:
    pieces = [
        *SPECIALS,
        "<|im_",
        "start|>",
        "<",
        "|>",
        "<|im_end|",
        " ",
        "\n",
        "a",
        "é",
        "中",
        "\u0338",
    ]
    return "".join(rng.choice(pieces) for _ in range(rng.randrange(1, 60)))


def _repeated(rng: random.Random) -> str:
    return rng.choice(
        ["a", " ", "\n", "=", "-_", "中", "😀", "0", "aA", "é", "ha "]
    ) * rng.randrange(1, 600)


def _shuffled(rng: random.Random) -> str:
    text = list(_source(rng)[:800] + _mixed(rng))
    rng.shuffle(text)
    return "".join(text)
