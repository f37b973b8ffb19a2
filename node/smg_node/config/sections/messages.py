"""Messages knobs: what is left out of prompts of the Messages API."""

from smg_node.config.schema.declaration import Section, switch


class Messages(Section):
    """How bodies of the Messages API are read."""

    drop_billing_block: bool = switch(
        True,
        "Leave the line about billing out of system prompts: it differs between sessions of one client, so their"
        " prompts would have no beginning in common that a cache could keep.",
    )
