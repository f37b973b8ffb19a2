"""Security: the keyring and its rotation, sealed packets, and sealed secrets."""
