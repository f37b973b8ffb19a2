"""Limits on one request, as knobs; over each of them the answer is 400 and names the limit."""

from smg_node.config.schema.declaration import Section, number

_MEMORY_WHY = "at least 1; above a million entries the request alone would block everybody else"


class Limits(Section):
    """How much one request may ask for."""

    messages_max: int = number(
        8192, "Most messages of a chat.", low=1, high=1_000_000, why=_MEMORY_WHY
    )
    parts_max: int = number(
        8192, "Most content parts of a request.", low=1, high=1_000_000, why=_MEMORY_WHY
    )
    tools_max: int = number(
        512,
        "Most tools of a request.",
        low=0,
        high=100_000,
        why="0 refuses tools; above 100,000 no prompt could hold them",
    )
    schema_max_bytes: int = number(
        2_097_152,
        "Most bytes of all schemas of a request together.",
        low=0,
        high=134_217_728,
        why="0 refuses schemas; above 128 MiB the body limit comes first",
    )
    stop_max: int = number(
        16,
        "Most stop strings.",
        low=0,
        high=1024,
        why="0 refuses stop strings; every token is compared with each of them",
    )
    stop_max_bytes: int = number(
        256,
        "Longest stop string.",
        low=1,
        high=65_536,
        why="at least one byte; text as long as a stop string may be held back",
    )
    n_max: int = number(
        16,
        "Most answers to one prompt (`n`).",
        low=1,
        high=1024,
        why="at least the one; each takes an engine slot",
    )
    choices_max: int = number(
        128,
        "Most answers of a request in all (prompts times `n`).",
        low=1,
        high=8192,
        why="at least the one; each takes an engine slot",
    )
    logit_bias_max: int = number(
        1024,
        "Most entries of `logit_bias`.",
        low=0,
        high=1_000_000,
        why="0 refuses it; no vocabulary is larger than a million",
    )
    metadata_max: int = number(
        16,
        "Most pairs of `metadata`.",
        low=0,
        high=1024,
        why="0 refuses it; every pair is kept with the answer",
    )
    grammar_max_bytes: int = number(
        65_536,
        "Largest grammar, pattern or choice list that constrains an answer.",
        low=0,
        high=16_777_216,
        why="0 refuses them; engines compile it while others wait",
    )
