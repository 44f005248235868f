"""Browser components: pictures that people click, zoom and walk through with the keyboard.

Each component is one Python module with its JavaScript and CSS beside it, and (but for `memory`, which shows nothing) two
doors: `mount()` puts it on a Streamlit page, `to_html()` makes a file that needs neither a server nor a network.  What a
picture of heads asks, and who answers, is in `contract`.  Everywhere `words` are the texts (see ENGLISH of the module), and
`key` is the identity on the page and the place in session state.  Importing this package loads neither streamlit nor torch.

    heads = vizformer.analysis.TraceNumbers(trace).heads("cross")   # or whatever answers as `contract.Heads` says
    attention.to_html(attention.pack(heads), query_tokens=heads.query_tokens, key_tokens=heads.key_tokens)
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
