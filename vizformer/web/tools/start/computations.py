"""What the picture of the first page shows, computed once for everybody."""

from vizformer.analysis.attribution.picture_numbers import ForwardPicture, forward_picture
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject


@cached
def numbers(subject: Subject) -> ForwardPicture:
    return forward_picture(subject.checkpoint, subject.trace, predicts=model_cache.predicts(subject.model))
