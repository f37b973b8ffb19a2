"""Identity of a picture: the digest by which engines and caches believe two pictures to be the same; pure.

vLLM keeps the outputs of its encoder and the blocks of its prefix cache by this word alone, so everything that the
values depend on is in it, and nothing that a client may choose for another. A tenant's namespace is in it where tenants
may not learn from each other's caches.
"""

from hashlib import sha256
from typing import Final

_KIND: Final = b"smg picture 1"
"""Another number here makes all digests new, for when the values of the same picture change."""


def picture_digest(
    data: bytes,
    *,
    fingerprint: str,
    tenant: str = "",
    detail: str = "",
    area_max: int | None = None,
    uuid: str = "",
) -> str:
    """Return 64 hex digits over the encoded picture and all that its tensor depends on.

    `fingerprint` is that of the family (`Family.fingerprint`), `tenant` the namespace or nothing where pictures may be
    shared, `detail` the part's own word, `area_max` what bounds its size for that word (`media.low_pixels`), which may
    change while engines and caches remember pictures; `uuid` is the client's, which only ever separates. Half a
    millisecond a megabyte.
    """
    looked = detail if area_max is None else f"{detail} {area_max}"
    digest = sha256(_KIND)
    for part in (tenant.encode(), fingerprint.encode(), looked.encode(), uuid.encode(), data):
        # With lengths, so that no two lists of parts are the same bytes.
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()
