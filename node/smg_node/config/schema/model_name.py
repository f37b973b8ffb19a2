"""Model name check, shared by the configuration and by settings changed at run time."""


def check_model_name(name: str) -> str:
    """Return `name`; ValueError if it cannot be a model's name in a request and in a header."""
    if not 1 <= len(name) <= 256 or not name.isprintable() or name != name.strip():
        raise ValueError(f"{name[:80]!r} is not a model name (1 to 256 printable characters)")
    return name
