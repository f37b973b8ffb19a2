"""Call arguments as clients of this API get them: always the JSON text of one object.

The stream has them as text, the object as an object, and both must say the same: what passes the gate
that calls of the Messages API pass. Of a text that is no object, or was cut off, the complete members
stay, and the rest is under a name that no function has, so nobody runs half a command.
"""

from smg_node.dialects.messages.argument_gate import ArgumentGate


def object_text(printed: str) -> str:
    """Return the text of the object that was printed; of anything else, one that holds it."""
    gate = ArgumentGate()
    return gate.feed(printed) + gate.finish() or "{}"
