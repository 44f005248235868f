"""The door Teach: what is behind it, a tile for each page."""

from vizformer.web.frame import sitemap
from vizformer.web.widgets import tiles


def page() -> None:
    tiles.door(sitemap.TEACH)


page()
