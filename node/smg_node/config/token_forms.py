"""Token forms: the signatures, and the types in the header, that signed tokens may have here at all."""

from typing import Final

SIGNATURES: Final = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "Ed25519",
    "EdDSA",
)
"""Asymmetric ones alone, so that no public key is ever taken for a secret; `EdDSA` is the older name of `Ed25519`."""
NO_TYPE: Final = "none"
TOKEN_TYPES: Final = ("at+jwt", "JWT", NO_TYPE)
"""What the header `typ` may say; `none` is a token without it."""
