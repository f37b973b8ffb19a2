"""Declaration of a knob: default, help text, bounds and their reason, flags.

One line in a section is the only place a knob exists. Flag, environment name, YAML path, check, help
text and reference are all read out of it (`knob.py`), so the words here are what operators see.

Every knob has the long flag of its path. `short` is the name of an essential one; `aliases` are names
that users of other gateways know; `metavar` stands for its value in the help.
"""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PlainValidator

from smg_node.config.address import Address, parse_address


class Section(BaseModel):
    """A group of knobs that belong together; frozen, complete, and without room for unknown keys."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, validate_default=True
    )


def _address(value: object) -> Address:
    if isinstance(value, Address):
        return value
    if not isinstance(value, str):
        raise ValueError("it must be text such as 0.0.0.0:30000; put quotes around it")
    return parse_address(value)


ListenAddress = Annotated[Address, PlainValidator(_address)]


def number(
    default: float | None,
    says: str,
    *,
    low: float,
    high: float,
    why: str,
    aliases: tuple[str, ...] = (),
    shown: str = "",
) -> Any:
    """Declare a bounded number; `why` is the reason for the bounds, shown in refusals and the reference."""
    extra: dict[str, Any] = {"why": why, "aliases": aliases, "shown": shown}
    return Field(default, ge=low, le=high, description=says, json_schema_extra=extra)


def switch(default: object, says: str, *, short: str = "", aliases: tuple[str, ...] = ()) -> Any:
    """Declare something that is on or off."""
    extra: dict[str, Any] = {"short": short, "aliases": aliases}
    return Field(default, description=says, json_schema_extra=extra)


def choice(default: str, says: str, *, aliases: tuple[str, ...] = ()) -> Any:
    """Declare one of the words its `Literal` annotation lists."""
    extra: dict[str, Any] = {"aliases": aliases}
    return Field(default, description=says, json_schema_extra=extra)


def text(
    default: object,
    says: str,
    *,
    most: int,
    short: str = "",
    aliases: tuple[str, ...] = (),
    metavar: str = "TEXT",
    shown: str = "",
    digits: bool = False,
    in_file: bool = False,
) -> Any:
    """Declare free text of at most `most` characters; `shown` stands for a default that varies.

    `digits`: a whole number in a file is such a text as well. `in_file`: it may hold a password, and so has a twin
    whose name ends in `_file`. Every secret (`SecretStr`) has one.
    """
    extra: dict[str, Any] = {"short": short, "aliases": aliases, "metavar": metavar, "shown": shown}
    extra |= {"digits": digits, "in_file": in_file}
    return Field(
        default, max_length=most, description=says, repr=not in_file, json_schema_extra=extra
    )


def words(
    default: tuple[str, ...],
    says: str,
    *,
    most: int,
    short: str = "",
    aliases: tuple[str, ...] = (),
    metavar: str,
) -> Any:
    """Declare a list of at most `most` texts."""
    extra: dict[str, Any] = {"short": short, "aliases": aliases, "metavar": metavar}
    # YAML and tests bring lists: the outer shape is lax, the entries stay strict.
    return Field(default, max_length=most, description=says, strict=False, json_schema_extra=extra)


def words_by_name(says: str, *, most: int, metavar: str) -> Any:
    """Declare a list of texts under each of at most `most` names, none by default."""
    extra: dict[str, Any] = {"metavar": metavar, "shown": "none"}
    # As with `words`, files bring lists.
    return Field(
        default_factory=dict,
        max_length=most,
        description=says,
        strict=False,
        json_schema_extra=extra,
    )


def mapping(says: str, *, most: int, metavar: str) -> Any:
    """Declare at most `most` names with a text each, none by default; `metavar` stands for such a text."""
    extra: dict[str, Any] = {"metavar": metavar, "shown": "none"}
    return Field(default_factory=dict, max_length=most, description=says, json_schema_extra=extra)


def address(default: str, says: str, *, short: str, host: str = "", port: str = "") -> Any:
    """Declare where to listen, as `host:port`; `host` and `port` are flags that set half of it, if any."""
    halves = {half: flag for half, flag in (("host", host), ("port", port)) if flag}
    extra: dict[str, Any] = {"short": short, **halves}
    return Field(default, description=says, json_schema_extra=extra)


def place(
    default: object,
    says: str,
    *,
    short: str = "",
    aliases: tuple[str, ...] = (),
    metavar: str = "PATH",
    shown: str = "",
) -> Any:
    """Declare a path; `~` is the home directory."""
    extra: dict[str, Any] = {"short": short, "aliases": aliases, "metavar": metavar, "shown": shown}
    return Field(default, description=says, strict=False, json_schema_extra=extra)
