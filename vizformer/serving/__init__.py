"""Serving the app: the address, and, for more than one worker, HAProxy before them and the supervisor that restarts them.

A worker is a server process with an interpreter lock of its own.  This room knows no Streamlit: workers are commands.
"""

import os
import re

ONE_OF = "VIZFORMER_ONE_OF"  # told to each worker: how many there are
CLIENT = "x-vizformer-client"  # the header in which HAProxy tells a worker the address of the browser
FRAMES = "VIZFORMER_FRAMES"  # origins whose pages may show the app in a frame, separated by commas; else none may
_ORIGIN = re.compile(r"https?://(\*\.)?[a-z0-9-]+(\.[a-z0-9-]+)*(:[0-9]{1,5})?", re.IGNORECASE)


def one_of() -> int:
    """How many workers this server has, this process being one of them; 1 where it serves alone."""
    told = os.environ.get(ONE_OF, "")
    return int(told) if told.isascii() and told.isdigit() and len(told) < 5 and int(told) else 1


def is_origin(text: str) -> bool:
    """Whether it reads as the origin of pages, such as https://school.example or https://*.school.example:8443."""
    return _ORIGIN.fullmatch(text) is not None
