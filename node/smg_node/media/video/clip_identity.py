"""Identity of a clip: the digest by which engines and caches believe two clips to be the same; pure.

As that of pictures (`pixels.identity`), and never equal to one: everything that the values and the prompt depend on is
in it, and nothing that a client may choose for another.
"""

from hashlib import sha256
from typing import Final

_KIND: Final = b"smg video 1"
"""Another number here makes all digests new, for when the values of the same clip change."""


def clip_digest(content: bytes, *, fingerprint: str, tenant: str = "", uuid: str = "") -> str:
    """Return 64 hex digits over a clip and all that its tensor depends on.

    `content` is the SHA-256 of its file. `fingerprint` is that of the family (`ClipFamily.fingerprint`), `tenant` the
    namespace or nothing where clips may be shared; `uuid` is the client's own name for it, which only ever separates.
    """
    assert len(content) == sha256().digest_size
    digest = sha256(_KIND)
    for part in (tenant.encode(), fingerprint.encode(), uuid.encode(), content):
        # With lengths, so that no two lists of parts are the same bytes.
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()
