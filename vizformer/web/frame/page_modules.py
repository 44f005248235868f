"""What pages are made of: imported once, by one thread, before the first page runs.

Two threads that import at once may find each other's modules half made (Python breaks such a deadlock that way): one
reads `model.trace` on its way to the package `model`, which the other one is importing. Readers who came while the
server started got an error in place of their page.
"""

import ast
import gc
from contextlib import suppress
from functools import cache
from threading import Lock

from vizformer.assets import app_root
from vizformer.web.catalogue.torch_setup import nothing_is_garbage, prepare_torch
from vizformer.web.frame.sitemap import PAGES

_ONE = Lock()


def load() -> None:
    """Imports torch and what the pages import at their top; the first call takes seconds, others who come then wait."""
    with _ONE:
        _load()


@cache
def _load() -> None:
    prepare_torch()
    with nothing_is_garbage():
        for entry in PAGES.values():  # the first page first
            page = ast.parse((app_root() / entry.file).read_text(encoding="utf-8"))
            page.body = [node for node in page.body if isinstance(node, ast.Import | ast.ImportFrom)]
            with suppress(Exception):  # that page says so itself, and the others work
                exec(compile(page, entry.file, "exec"), {})
    gc.freeze()  # what is imported stays for good: nobody looks through it again
