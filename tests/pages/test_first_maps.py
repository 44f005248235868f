"""What pages open on: no map of attention is one bright column, in which every row gives one key nearly all it has."""

import json
from collections.abc import Iterator

import numpy as np
import pytest

from tests.bundled import load
from tests.components.test_mount import sent
from tests.pages.reading import array
from vizformer.analysis import kinds, site_name
from vizformer.web.frame import sitemap
from vizformer.web.link.beginnings import CHINESE, CONTINUED, ENGLISH, FILLED
from vizformer.web.widgets import slides

MOST = 0.6  # of the mean weight, on one key
KINDS = {
    sitemap.CROSS.file: "cross",
    sitemap.MASKS.file: "decoder",
}  # that a page has boxes for, whatever the link says
READERS = {
    "English": ("en-US", "zh-en", ENGLISH.text),
    "Chinese": ("zh-CN", "zh-en", CHINESE.text),
    "stories": ("en-US", "stories", CONTINUED.text),
    "cloze": ("en-US", "cloze", FILLED.text),
}


def places() -> list[tuple[str, str]]:
    return [
        (entry.file, part) for url, entry in sitemap.PAGES.items() for part in slides.lesson_prose(url, "en") or [""]
    ]


def share(weights: np.ndarray) -> float:
    """Of the mean weight, the largest share of one key; of the rows that see several keys."""
    choosing = (weights > 0).sum(1) > 1
    return float(weights[choosing].mean(0).max()) if choosing.any() else 0.0


def drawn(app, model: str, page: str) -> Iterator[np.ndarray]:
    """The maps of attention on the page: the large one of each component and chart, and that of the chosen head."""
    for one in app.get("plotly_chart"):
        for trace in json.loads(one.proto.spec)["data"]:
            z = np.nan_to_num(array(trace["z"]).astype(float)) if trace.get("type") == "heatmap" else np.zeros(0)
            if z.ndim == 2 and min(z.shape) > 2 and z.min() >= 0 and np.isclose(z.sum(1), 1, atol=0.02).mean() > 0.8:
                yield z
    for index, one in enumerate(app.get("bidi_component")):
        if not one.proto.component_name.endswith(("_attention", "_heatmap")):
            continue
        data = sent(app, index)
        if data["held"] == "all" and data.get("view", "weights") == "weights":
            maps = np.array(data["weights"], float).reshape(data["shape"])
            chosen = data["selected"] or {"layer": 0, "head": 0}
            yield maps[chosen["layer"], chosen["head"]]
    boxes = {box.key: box.value for box in app.selectbox}
    if {"view.layer", "view.head"} <= set(boxes):
        view = app.session_state["vizformer.view"].view
        trace = load(model).trace(view.text)
        wanted = (KINDS.get(page, view.kind), "encoder", "decoder")
        kind = next(kind for kind in wanted if kind in kinds(trace))
        yield trace[site_name(kind, boxes["view.layer"])].pattern(boxes["view.head"]).numpy()


@pytest.mark.sample(6)
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(("page", "part"), places())
def test_no_page_opens_on_one_bright_column(open_app, page: str, part: str, reader: str) -> None:
    locale, model, text = READERS[reader]
    app = open_app(page, locale=locale, model=model, text=text, **({"part": part} if part else {}))
    assert not app.exception
    model = app.session_state["vizformer.view"].view.model.name
    for weights in drawn(app, model, page):
        assert share(weights) <= MOST


def test_a_column_that_is_bright_is_found() -> None:
    assert share(np.array([[1, 0, 0], [0.9, 0.1, 0], [0.9, 0.05, 0.05]])) > MOST
    assert share(np.array([[1, 0, 0], [0.2, 0.8, 0], [0.5, 0.2, 0.3]])) < MOST
