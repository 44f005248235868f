"""From other programs: arrays of attention weights, without a model, in the pictures of the page Attention."""

from vizformer.web.pages.elsewhere import draw_pictures, hand_in
from vizformer.web.words.errors import guarded


def page() -> None:
    guarded()(draw_pictures)()  # in sight at once; the form for the next file is below
    guarded()(hand_in)()


page()
