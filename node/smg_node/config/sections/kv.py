"""KV knobs: what the node follows and keeps of the engines' prefix caches."""

from typing import Literal

from smg_node.config.schema.declaration import Section, choice, number, switch


class Kv(Section):
    """What this node follows of what engines have cached, and keeps of it."""

    enabled: bool = switch(
        True, "Follow which blocks of prompts engines have cached, where they tell."
    )
    subscribers: Literal["probers", "all"] = choice(
        "probers",
        "Which nodes follow an engine's cache: probers, the nodes that look at it (all, of up to three), or"
        " all.",
    )
    entries_max: int = number(
        1_000_000,
        "Most blocks known at once, of all workers together; the longest unused are forgotten first.",
        low=1_000,
        high=100_000_000,
        why="below 1,000 not even one worker is known; 100 million blocks are about 2 GB",
    )
    block: int = number(
        64,
        "Tokens of a block, as prompts are compared; the same on all nodes.",
        low=16,
        high=1024,
        why="engines cache 16 tokens and more at a time; a prompt shorter than a block has no beginning",
    )
    share: bool = switch(
        True,
        "Tell the other nodes what is known of the engines' caches, and believe what they tell.",
    )
    share_bytes_per_s: int = number(
        65_536,
        "Bytes a second of such news to each other node; what is more is dropped, and asked for later.",
        low=4_096,
        high=4_194_304,
        why="below 4 KB even what is asked for never catches up; 64 KB are 6,500 blocks a second",
    )
