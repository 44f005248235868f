"""A map on a page (`components.heatmap`), with its files, its sentence and its table."""

from vizformer import figures
from vizformer.components import heatmap
from vizformer.figures.figure import Figure
from vizformer.web.widgets.downloads import Picture, caption, take_away


def show(drawn: heatmap.Heatmap, *, key: str) -> None:
    """Mounts the map, and offers it below."""
    heatmap.mount(drawn, key=key)

    def figure() -> Figure:
        weighted = drawn.scores is None
        return figures.attention_heatmap(
            drawn.weights if drawn.scores is None else drawn.scores,
            drawn.query_tokens,
            drawn.key_tokens,
            reasons=drawn.reasons,
            kind="weights" if weighted else "scores",
            title=drawn.title,
        )

    take_away(Picture(key, caption(drawn.title), figure, page=lambda: heatmap.to_html(drawn)), key=key)
