"""The door Teach: where a class is, a tile for each page behind it, and the plan to teach by."""

from vizformer.web.frame import classroom, presenting, sitemap
from vizformer.web.pages.path.stations import asks
from vizformer.web.widgets import class_counts, plan, tiles


def page() -> None:
    if classroom.leads() is not None:
        class_counts.show(asks)
        if presenting.is_on():  # at the projector nothing else
            return
    tiles.door(sitemap.TEACH)
    plan.show()


page()
