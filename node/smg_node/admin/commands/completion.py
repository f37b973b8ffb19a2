"""Completion command, `smg-admin completion`: prints the shell script that completes arguments."""

from enum import Enum
from typing import Annotated, Final

import typer

PROGRAM: Final = "smg-admin"
COMPLETE_VARIABLE: Final = "_SMG_ADMIN_COMPLETE"


class Shell(Enum):
    """A shell that can be taught."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(help="bash, zsh or fish.", show_default=False)],
) -> None:
    """Print a completion script. For bash: eval "$(smg-admin completion bash)"."""
    from typer.completion import (  # type: ignore[attr-defined]  # public, but in no __all__
        get_completion_script,
    )

    print(
        get_completion_script(prog_name=PROGRAM, complete_var=COMPLETE_VARIABLE, shell=shell.value)
    )
