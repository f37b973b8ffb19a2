"""Call arguments as clients of this API get them: always the JSON text of one object.

The stream has them as text, the object as an object, and both must say the same: what passes the gate
that calls of the Messages API pass, a member as soon as its value is complete. Of a text that is no
object, or was cut off, the complete members stay, and the rest is under a name that no function has, so
nobody runs half a command.
"""

import msgspec

from smg_node.core.generation.call_arguments import UNREADABLE_KEY
from smg_node.dialects.messages.argument_gate import ArgumentGate


def object_text(printed: str) -> str:
    """Return the text of the object that was printed; of anything else, one that holds it."""
    gate = ArgumentGate()
    return gate.feed(printed) + gate.finish() or "{}"


def text_missing(told: str) -> str:
    """Return what ends the object of which `told` has gone out, where nobody knows how it went on; ""
    where it is whole.
    """
    if not told:
        return "{}"
    try:
        msgspec.json.decode(told.encode(), type=msgspec.Raw)
    except msgspec.DecodeError:
        return f',"{UNREADABLE_KEY}":""}}'
    return ""
