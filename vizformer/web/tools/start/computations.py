"""What the walk shows, computed once for everybody."""

from vizformer.analysis.attribution.forward_scenes import SHOWN, Walkthrough, walkthrough
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.view import usual_query


@cached
def numbers(subject: Subject) -> Walkthrough:
    predicts = model_cache.predicts(subject.model)
    return walkthrough(subject.checkpoint, subject.trace, followed(subject), predicts=predicts)


def followed(subject: Subject) -> int:
    """The token whose way is followed: a gap to be filled, the token after which the text goes on, else a word."""
    config, shown = subject.config, subject.tokens[:SHOWN]
    if config.architecture == "decoder-only":
        return len(shown) - 1
    gaps = (i for i, token in enumerate(shown) if config.mask_id is not None and token.id == config.mask_id)
    usual = usual_query(shown)
    return next(gaps, usual) if config.architecture == "encoder-only" else usual
