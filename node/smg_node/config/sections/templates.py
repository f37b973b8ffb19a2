"""Templates knobs: time and size limits of chat templates, which are programs from outside."""

from smg_node.config.schema.declaration import Section, number, switch


class Templates(Section):
    """What a chat template may cost, and who may bring one."""

    allow_from_request: bool = switch(
        False, "Whether a request may bring its own chat template (`chat_template` in the body)."
    )
    render_max_s: float = number(
        2,
        "Seconds one rendering may take.",
        low=0.01,
        high=60,
        why="an ordinary chat takes 10 us to 1 ms; after a minute no template is honest",
    )
    output_max_bytes: int = number(
        16_777_216,
        "Largest text a template may print.",
        low=1024,
        high=1_073_741_824,
        why="no prompt fits below 1 KiB; the text is held in memory, so at most 1 GiB",
    )
    source_max_bytes: int = number(
        1_048_576,
        "Largest template source.",
        low=1024,
        high=16_777_216,
        why="published templates take 1 to 30 KiB; compiling 16 MiB already takes seconds",
    )
