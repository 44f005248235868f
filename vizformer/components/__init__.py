"""Browser components: pictures that people click, zoom and walk through with the keyboard.

Each component is one Python module with its JavaScript and CSS beside it, and (but for `memory`, which
shows nothing) two doors: `mount()` puts it on a
Streamlit page, `to_html()` makes a file that needs neither a server nor a network.  Importing this package loads
neither streamlit nor torch.

    from vizformer.components import attention, tokens
    payload = attention.pack_heads(weights, scores, reasons, chosen=(0, 0))
    attention.to_html(payload, query_tokens=words, key_tokens=words)
"""

from importlib import import_module
from types import ModuleType

__all__ = [
    "architecture",
    "attention",
    "composition",
    "lines",
    "mask",
    "matrix",
    "memory",
    "player",
    "sortable",
    "table",
    "tokens",
    "tree",
    "walkthrough",
]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
