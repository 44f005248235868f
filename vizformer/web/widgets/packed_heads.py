"""All heads of one kind for a component on a page: themselves while they are few numbers, else their address."""

from vizformer.analysis import Kind
from vizformer.components import attention
from vizformer.components.payload import HeadsPayload
from vizformer.web.catalogue import head_files, subject_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import head_routes
from vizformer.web.link.view import Without

AT_ONCE = 2**20
"""Bytes up to which all heads go to the browser with the page; of more, the one that is looked at comes first.

Measured with all-mpnet-base-v2 and 68 tokens, 4 MB: 1.4 s from Enter to the map at once, 1.0 s by the address; another
head takes 0.04 s both ways."""


def packed(subject: Subject, kind: Kind, shape: tuple[int, int, int, int], without: Without = "none") -> HeadsPayload:
    """What `attention.mount` and `reading.mount` show; `shape` is (layers, heads, queries, keys)."""
    if attention.fits(shape, limit=AT_ONCE):
        return subject_cache.heads(subject, kind, None, without)
    return head_files.packed(subject, kind, without, head_routes.base())
