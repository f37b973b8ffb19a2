"""Probe texts: texts that make tokenizers disagree, for checks of fast encoders. Pure.

The same for every process and hash seed: the only chance in it is a small generator with a fixed
start. Each text is short, because a difference in a long one is a difference in some short one.
"""

from collections.abc import Iterator, Sequence
from typing import Final

_SCRIPTS: Final = (
    "The quick brown fox jumps over the lazy dog; it's what foxes've done, they'll say, I'D guess.",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. ÄÖÜ ẞ ß ﬁ ﬂ",
    "Voix ambiguë d’un cœur qui, au zéphyr, préfère les jattes de kiwis — l'été, n’est-ce pas ?",
    "El pingüino Wenceslao hizo kilómetros bajo exhaustiva lluvia. ¿Qué? ¡Así!",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. ЁЖ",
    "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. ΐ ΰ ς Σ",
    "我能吞下玻璃而不伤身体。繁體字也可以，對吧？『引號』…",
    "いろはにほへと ちりぬるを ガギグゲゴ がぎぐげご ｶﾞｷﾞｸﾞ 漢字かな交じり文。",
    "키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다. 각",
    "نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر ومغلف بجلد أزرق. ١٢٣",
    "דג סקרן שט בים מאוכזב ולפתע מצא חברה. שָׁלוֹם",
    "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश हुआ। क्षि ज़ १२३",
    "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน ๑๒๓",
    "ខ្ញុំអាចញុំកញ្ចក់បាន ដោយគ្មានបញ្ហា",
    "ཤེལ་སྒོ་ཟ་ནས་ང་ན་གི་མ་རེད།",
    "მინას ვჭამ და არა მტკივა. ᲛᲘᲜᲐ",
    "Կրնամ ապակի ուտել և ինծի անհանգիստ չըներ։",
    "ᚠᛇᚻ᛫ᛒᛦᚦ ⠓⠑⠇⠇⠕ 𐍈𐌰 𝔘𝔫𝔦 𝟙𝟚𝟛 Ⅷ ½ ² ①",
    "Tôi có thể ăn thủy tinh mà không hại gì. Ồ ệ ữ",
    "i̇stanbul İSTANBUL ıspanak IŞIK ǅ ŉ",
)
_CODE: Final = (
    'def f(x: int = 0) -> None:\n    """Doc."""\n    return x ** 2 if x != 0 else None  # why\n',
    '\tfor (int i = 0; i < n; ++i) {\r\n\t\tprintf("%d\\n", a[i] & 0xFF);\r\n\t}\r\n',
    '{"a": [1, 2.5e-10, null, true], "b": {"c": "\\u00e9\\n"}}',
    "SELECT * FROM t WHERE a >= 10 AND b LIKE '%x_%' -- note\n;",
    '<div class="a b">&nbsp;text</div><!-- c --><br/>\n\n\n<p>',
    'fn main() { let s: &\'static str = r#"raw"#; println!("{s:?}"); }',
    "$ ls -la | grep '^d' && echo \"$HOME\" > /dev/null 2>&1",
    "https://example.com/a/b?c=d&e=%20f#g user@example.org 192.168.0.1 ::1",
    "x = [a for a in b if a]; y = {**k}; z = lambda *a, **k: (a, k)\n\n\n\n    pass",
    "\\begin{equation} \\alpha_{i}^{2} \\leq \\frac{1}{n} \\end{equation}",
    "a=b==c===d!=e<=f>=g->h=>i::j..k...l//m/*n*/",
    "0x1F 1_000_000 3.14159 1e10 -42 +7 007 12345678901234567890 1,234.56 ½",
)
_EMOJI: Final = (
    "😀😃😄 🙂🙃 👍🏽👎🏿 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇯🇵 ❤️ ☺︎ #️⃣ 🫠",
    "text😀text 😀 text\n😀\n",
    "e\u0301 \u00e9 \u1e9b\u0323 \uac01 \u1100\u1161\u11a8 \u212b \ufb01",
    "a\u200bb\u200cc\u200dd\ufeffe\u00adf\u2060g",
    "\u202eright to left\u202c \u2066x\u2069",
    "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘",
)
_SPACES: Final = (
    " ",
    "\n",
    "\t",
    "\r",
    "\r\n",
    "\u00a0",
    "\u3000",
    "\u2028",
    "\x0b",
    "\x0c",
    "\x85",
)
_RUNS: Final = (
    "a",
    "A",
    "0",
    ".",
    "-",
    "=",
    "_",
    "!",
    "é",
    "中",
    "あ",
    "😀",
    "\u0301",
    "ab",
    "1a",
    " x",
)
_LENGTHS: Final = (1, 2, 3, 7, 8, 16, 63, 200)
_SEED: Final = 0x9E3779B97F4A7C15


def probe_texts(added_tokens: Sequence[str]) -> list[str]:
    """Return at least 300 texts; `added_tokens` are spliced in between the others."""
    return [
        "",
        *_SCRIPTS,
        *_CODE,
        *_EMOJI,
        *_whitespace(),
        *_repetitions(),
        *_borders(added_tokens),
        *_controls(),
        *_noise(),
    ]


def _whitespace() -> Iterator[str]:
    for space in _SPACES:
        yield space
        yield space * 5
        yield f"a{space}b{space * 2}c{space * 3}"
        yield f"{space}lead and trail{space}"
    yield " \n \n\n  \n   x \t y\n\t\n"
    yield "a  b   c    d     e      f"


def _repetitions() -> Iterator[str]:
    for unit in _RUNS:
        for length in _LENGTHS:
            yield unit * length


def _borders(added_tokens: Sequence[str]) -> Iterator[str]:
    for token in _some(added_tokens, ADDED_MAX):
        yield token
        yield f"word{token}word"
        yield f" {token} \n{token}{token}"
        yield f"{token[:-1]} {token[1:]} 中{token}é"


def _some(tokens: Sequence[str], most: int) -> list[str]:
    """Return at most `most` of the tokens, the first and last of them and evenly between."""
    if len(tokens) <= most:
        return list(tokens)
    return [tokens[place * (len(tokens) - 1) // (most - 1)] for place in range(most)]


def _controls() -> Iterator[str]:
    yield "".join(map(chr, range(0x20)))
    yield "".join(map(chr, range(0x7F, 0x100)))
    yield "a\x00b\x1b[31mred\x1b[0m\x7f"
    yield "\ufffd\ufffe\uffff\U0010ffff\ue000"
    yield "".join(map(chr, range(0x2000, 0x2070)))


def _noise() -> Iterator[str]:
    """Yield pseudo-random bytes read as Latin-1, and characters from all over Unicode."""
    state = _SEED
    for round_ in range(NOISE):
        codes = []
        for _ in range(24 + round_ % 40):
            state = (state * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % 2**64
            codes.append(state >> 33)
        if round_ % 2:
            yield bytes(code % 256 for code in codes).decode("latin-1")
        else:
            yield "".join(_character(code) for code in codes)


def _character(code: int) -> str:
    value = code % (0x30000 if code % 3 else 0x3000)
    return " " if 0xD800 <= value < 0xE000 else chr(value)


ADDED_MAX: Final = 24
NOISE: Final = 80
