"""Prompt asking: who asks for a prompt with pictures, and how patiently."""

import msgspec


class Asking(msgspec.Struct, frozen=True):
    """Who asks for a prompt with pictures (None where that is not known), until when room for them is waited for (0
    for not at all), and whether they are only counted.
    """

    tenant: str | None
    patient_until_s: float
    counted: bool
