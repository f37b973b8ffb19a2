"""Call arguments as clients of this API get them: always the JSON text of one object.

The stream has them as text, the object as an object, and both must say the same. What a model printed
that is no object, or was cut off, is told under a name that no function has: never a shortened
value, so nobody runs half a command.
"""

from typing import Any, Final

import msgspec

from smg_node.core.generation.call_arguments import UNREADABLE_KEY
from smg_node.dialects.openai.frames import encode_json

_object: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_lenient: Final = msgspec.json.Decoder(Any, strict=False).decode


def object_text(printed: str) -> str:
    """Return the text of the object that was printed; of anything else, one that holds it."""
    text = printed.strip()
    if not text:
        return "{}"
    try:
        _object(text)
        _lenient(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return encode_json({UNREADABLE_KEY: printed.encode("utf-8", "replace").decode()}).decode()
    return text
