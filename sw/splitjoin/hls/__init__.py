"""splitjoin.hls: typed Python functions, and classes with a state, as circuits with streams, for any Amaranth design.

`component` gives a component, `verilog` its text, `report` its schedule and costs by lines of the source, and `jit` the
same in machine code. The API is what `dir(splitjoin.hls)` lists.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from splitjoin.lang.fold import fixed, signed, unsigned

    from .api import component, report, verilog
    from .kernels import kernel
    from .machine_code import jit
    from .reports import Report

__all__ = ["Report", "component", "fixed", "jit", "kernel", "report", "signed", "unsigned", "verilog"]

#: The module of each name, imported when it is asked for: the compiler of folds needs none of them.
_MODULES = {"Report": ".reports", "component": ".api", "fixed": "splitjoin.lang.fold", "jit": ".machine_code",
            "kernel": ".kernels", "report": ".api", "signed": "splitjoin.lang.fold", "unsigned": "splitjoin.lang.fold",
            "verilog": ".api"}


def __getattr__(name: str) -> Any:
    """A name of the API, imported when it is asked for."""
    if name in _MODULES:
        return globals().setdefault(name, getattr(_import_module(_MODULES[name], __name__), name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The API."""
    return sorted(__all__)
