"""Takes the place of SGLang's own kernels, of which there is no build for CPUs.

A dense Llama on PyTorch's attention imports their names and calls none of them. One that is called all the same says so.
"""

from collections.abc import Callable
from typing import NoReturn

__version__ = "0.0.0"


def __getattr__(name: str) -> Callable[..., NoReturn]:
    if name.startswith("__"):
        raise AttributeError(name)

    def called(*_arguments: object, **_named: object) -> NoReturn:
        raise NotImplementedError(f"{name} is a kernel for GPUs, and this is a stand-in for it")

    called.__name__ = name
    return called
