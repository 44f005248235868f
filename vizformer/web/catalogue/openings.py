"""The reading of a large model's weights: in a thread of its own, told of in bytes, ended when the last reader leaves.

How it is followed: `vizformer.web.catalogue.followed_work`.  What is read is kept as any open model.
"""

from vizformer.checkpoints.tensors.matching import hearing_reads
from vizformer.errors import VizformerError
from vizformer.web.catalogue import model_cache, sources
from vizformer.web.catalogue.followed_work import Followed, Heard
from vizformer.web.link.model_ref import ModelRef

LARGE = 128 * 2**20  # bytes of files from which on the reading is followed; less is there in the time of a picture

OPENINGS = Followed()


def is_large(model: ModelRef) -> bool:
    """Whether the weights of this model are still to be read, and many; of one that does not open they are not."""
    if not model.is_from_elsewhere or model_cache.is_open(model):
        return False
    try:
        found = model_cache.glance(model)
    except VizformerError:
        return False
    return not found.problems and found.n_bytes >= LARGE


def follow(model: ModelRef, hear: Heard) -> None:
    """Returns when the model is open; `hear` is told the bytes that were read, of how many: each is read twice, to look for
    what is no number, and to be placed.
    """
    total, may_open = 2 * model_cache.glance(model).n_bytes, sources.may_open([model])

    def read(heard: Heard) -> None:
        done = 0

        def count(n_bytes: int) -> None:
            nonlocal done
            done = min(done + n_bytes, total)
            heard(done, total)

        with sources.lent(may_open), hearing_reads(count):
            model_cache.checkpoint(model)

    OPENINGS.follow(model, read, hear)
