"""What the picture of the first page shows, computed once for everybody."""

from vizformer.analysis import Kind
from vizformer.analysis.attribution.picture_numbers import ForwardPicture, forward_picture
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject


@cached
def numbers(subject: Subject, layer: int = 0, whole: tuple[Kind, int] | None = None) -> ForwardPicture:
    predicts = model_cache.predicts(subject.model)
    return forward_picture(subject.checkpoint, subject.trace, layer=layer, whole=whole, predicts=predicts)
