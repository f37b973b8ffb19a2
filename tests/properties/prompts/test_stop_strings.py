"""Stop strings: the same end for every way of cutting a text, and nothing held without need."""

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.tokens.decoding.stop_strings import StopMachine
from support.models.vocabulary import qwen
from support.tools.example_counts import example_count

few = st.text(alphabet="ab\n<", max_size=30)
stops = st.lists(st.text(alphabet="ab\n<", min_size=1, max_size=5), min_size=1, max_size=6)


def oracle(text: str, strings: list[str]) -> tuple[int, str] | None:
    """Return where the text ends and by what: the first place where one ends, the longest there."""
    for end in range(1, len(text) + 1):
        matched = [string for string in strings if text[:end].endswith(string)]
        if matched:
            longest = max(matched, key=len)
            return end - len(longest), longest
    return None


def could_grow(text: str, strings: list[str]) -> int:
    """Return how many characters at the end of `text` may be the beginning of a stop string."""
    return max(
        (
            size
            for string in strings
            for size in range(1, len(string))
            if text.endswith(string[:size])
        ),
        default=0,
    )


@settings(deadline=None, max_examples=example_count(1500))
@given(text=few, strings=stops, keep=st.booleans(), data=st.data())
def test_every_cutting_ends_where_a_naive_search_says(
    text: str, strings: list[str], keep: bool, data: st.DataObject
) -> None:
    machine = StopMachine(strings, keep=keep)
    said = ""
    matched: str | None = None
    at = 0
    while at < len(text) and matched is None:
        size = data.draw(st.integers(0, len(text) - at))
        emitted, matched = machine.feed(text[at : at + size])
        at += size
        said += emitted
        if matched is None:
            # Everything that cannot become a stop string has left, and nothing else.
            assert said == text[: at - could_grow(text[:at], strings)]
        if size == 0:
            emitted, matched = machine.feed(text[at : at + 1])
            at += 1
            said += emitted
    wanted = oracle(text, strings)
    if wanted is None:
        assert matched is None
        assert said + machine.finish() == text
    else:
        start, string = wanted
        assert matched == string
        assert said == (text[: start + len(string)] if keep else text[:start])


@settings(deadline=None, max_examples=example_count(150))
@given(
    text=st.text(max_size=80),
    strings=st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=4),
    data=st.data(),
)
def test_token_borders_of_a_real_vocabulary_make_no_difference(
    text: str, strings: list[str], data: st.DataObject
) -> None:
    if text and data.draw(st.booleans()):  # A stop string that does occur, in most cases.
        start = data.draw(st.integers(0, len(text) - 1))
        strings = [*strings, text[start : start + data.draw(st.integers(1, 6))]]
    tokenizer = qwen()
    ids = tokenizer.encode(text, add_special_tokens=False)
    printed = tokenizer.decode(ids, skip_special_tokens=False)
    machine = StopMachine(strings, keep=False)
    detokenizer = tokenizer.detokenizer(
        prompt_tail=(), skip_special_tokens=False, spaces_between_special_tokens=True
    )
    said, matched = "", None
    for piece in [*map(detokenizer.feed, ids), detokenizer.finish()]:
        emitted, matched = machine.feed(piece)
        said += emitted
        if matched is not None:
            break
    wanted = oracle(printed, strings)
    if wanted is None:
        assert said + machine.finish() == printed
    else:
        assert (said, matched) == (printed[: wanted[0]], wanted[1])
