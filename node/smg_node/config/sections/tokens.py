"""Tokens knobs: tokenizers and their caches."""

from typing import Literal

from smg_node.config.schema.declaration import Section, choice, number

_CACHE_WHY = "0 turns the cache off; above 64 GiB it competes with the engines on the machine"


class Tokens(Section):
    """How text becomes token ids, and how much memory remembering takes."""

    encoder: Literal["auto", "tokenizers"] = choice(
        "auto",
        "`auto` takes the fast encoder where it proves equal to the reference at load,"
        " `tokenizers` always takes the reference.",
    )
    l0_entries: int = number(
        10_000,
        "Most prompts remembered whole, with their ids.",
        low=0,
        high=10_000_000,
        why="0 turns the cache off; above 10 million its index alone takes gigabytes",
        aliases=("--tokenizer-cache-l0-max-entries",),
    )
    l0_max_bytes: int = number(
        268_435_456,
        "Most memory of the whole-prompt cache.",
        low=0,
        high=68_719_476_736,
        why=_CACHE_WHY,
        aliases=("--tokenizer-cache-l0-max-memory",),
    )
    l1_max_bytes: int = number(
        16_777_216,
        "Most memory of the cache of prompt beginnings; 3,000 pieces of 2 KB.",
        low=0,
        high=68_719_476_736,
        why=_CACHE_WHY,
        aliases=("--tokenizer-cache-l1-max-memory",),
    )
    thread_above_bytes: int = number(
        49_152,
        "Texts longer than this are encoded in a thread, so that nobody else waits for them.",
        low=0,
        high=1_073_741_824,
        why="0 uses a thread for every text; above 1 GiB none ever would",
    )
    bundle_max_bytes: int = number(
        268_435_456,
        "Largest tokenizer, packed and unpacked, that is accepted from an engine.",
        low=65_536,
        high=4_294_967_296,
        why="the smallest tokenizers take 64 KiB; it is unpacked in memory, so at most 4 GiB",
    )
