"""Opaque state: what a vendor's model wants back unchanged and only its issuer can read."""

from typing import Final

import msgspec

SIGNATURE: Final = "signature"
"""Proves or carries the thought, text or call that it stands on."""
REDACTED: Final = "redacted"
"""A thought that is not shown at all."""
ENCRYPTED: Final = "encrypted"
"""A thought, encrypted, beside a summary or nothing."""


class Opaque(msgspec.Struct, frozen=True, gc=False):
    """One piece of it.

    `issuer` is the family of models that made it: "anthropic", "google", "openai", "xai". It goes back to that one
    only. `kind` is one of the above, `data` what the issuer wrote, base64 where that is bytes. `label` is the id or
    name that the issuer gave the thing that carries it, "" for none.
    """

    issuer: str
    kind: str
    data: str
    label: str = ""
