"""A model with sliding windows on the pages: what is masked, why, in which layer; texts longer than the window."""

import json

import numpy as np
import pyarrow as pa
import pytest
from streamlit.testing.v1 import AppTest

from tests.checkpoints import folders as made
from tests.components.test_mask import sent
from tests.pages.conftest import Open
from tests.pages.reading import said, tables
from vizformer import explain
from vizformer.checkpoints import Checkpoint, load
from vizformer.web.catalogue import server_folder

ATTENTION, GENERATION = "pages/explore/attention.py", "pages/explore/generation.py"
QKV, HEADS, MASKS, MAP = "pages/learn/qkv.py", "pages/learn/heads.py", "pages/learn/masks.py", "pages/learn/map.py"
REPORT = "pages/checkpoint/report.py"
TEXT, WINDOW = "I have two dogs", 4
FULL, SLIDING = "full_attention", "sliding_attention"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    made.llama(root / "mistral", kind="Mistral", sliding_window=WINDOW)
    kinds = [FULL, SLIDING, FULL]
    made.llama(root / "mixed", kind="Ministral", sliding_window=WINDOW, layer_types=kinds, head_dim=4)
    return root


@pytest.fixture(autouse=True)
def shelf(written, monkeypatch):
    monkeypatch.setenv(server_folder.VARIABLE, str(written))
    return written


@pytest.fixture
def mixed(shelf) -> Checkpoint:
    return load(shelf / "mixed")


def reasons(n: int, window: int) -> np.ndarray:
    distance = np.arange(n)[:, None] - np.arange(n)[None, :]
    return np.where(distance < 0, 2, np.where(distance >= window, 3, 0))


def column(app: AppTest, component: str, name: str) -> np.ndarray:
    """A column that a component was sent."""
    (part,) = (p.proto for p in app.get("bidi_component") if p.proto.component_name.endswith(component))
    reference = next(iter(json.loads(part.mixed.json)[name].values()))
    return pa.ipc.open_stream(part.mixed.arrow_blobs[reference].data).read_all()[0].to_numpy()


def mask_view(app: AppTest) -> dict[str, object]:
    found = [sent(app, i) for i in range(len(app.get("bidi_component")))]
    return next(data for data in found if "panels" in data)


def test_the_maps_of_every_layer_have_their_own_reasons(open_app: Open, mixed: Checkpoint) -> None:
    n = len(mixed.encode(TEXT))
    assert n > WINDOW + 2
    app = open_app(ATTENTION, model="models/mixed", text=TEXT)
    assert not app.exception
    found = column(app, "vizformer_attention", "reasons").reshape(3, n, n)
    for layer in range(3):
        np.testing.assert_array_equal(found[layer], reasons(n, WINDOW if layer == 1 else n))
    one = open_app(ATTENTION, model="models/mistral", text=TEXT)
    np.testing.assert_array_equal(column(one, "vizformer_attention", "reasons").reshape(n, n), reasons(n, WINDOW))


@pytest.mark.parametrize(("locale", "words"), [("en-US", "outside the window"), ("zh-CN", "窗口之外")])
def test_every_step_of_a_query_beyond_the_window(open_app: Open, mixed: Checkpoint, locale: str, words: str) -> None:
    query = len(mixed.encode(TEXT)) - 2
    steps = explain.attention_steps(mixed, mixed.trace(TEXT), "decoder.1.self", 2, query)
    (mask,) = [step for step in steps if step.key == "mask"]
    assert (~np.isfinite(mask.result)).sum() == query + 2 - WINDOW
    app = open_app(QKV, locale=locale, model="models/mixed", text=TEXT, layer=1, head=2, query=query)
    app.toggle(key="steps.all").set_value(True).run()
    assert not app.exception
    assert not app.error
    assert len(app.success) == len(steps)
    assert words in said(app)
    app = open_app(QKV, locale=locale, model="models/mixed", text=TEXT, layer=0, head=2, query=query)
    app.toggle(key="steps.all").set_value(True).run()
    assert words not in said(app)


@pytest.mark.parametrize(
    ("locale", "windowed", "full", "painted"),
    [
        (
            "en-US",
            "is a causal sliding window of 4 tokens",
            "is causal, without a window",
            "applies to the layers that have this mask ({})",
        ),
        ("zh-CN", "4 个词元的因果滑动窗口", "没有窗口", "拥有这种掩码的层（{}）"),
    ],
)
def test_the_masks_lesson_knows_the_mask_of_the_layer(
    open_app: Open, mixed: Checkpoint, locale: str, windowed: str, full: str, painted: str
) -> None:
    trace = mixed.trace(TEXT)
    for layer, words in ((0, full), (1, windowed)):
        record = trace[f"decoder.{layer}.self"]
        app = open_app(MASKS, locale=locale, model="models/mixed", text=TEXT, layer=layer, part="paint")
        assert not app.exception
        assert words in said(app)
        assert painted.format("0, 2" if layer == 0 else "1") in said(app)
        np.testing.assert_array_equal(mask_view(app)["reasons"], record.reason(0).numpy().ravel())
        np.testing.assert_allclose(mask_view(app)["weights"], record.pattern(0).numpy().ravel(), atol=1e-6)
    dials = f"masks.kind:window~masks.reach:{WINDOW - 1}~masks.causal:1"
    for layer in (0, 1):  # the model's own where it has it, laid over where it has not
        app = open_app(MASKS, locale=locale, model="models/mixed", text=TEXT, layer=layer, dials=dials)
        own = explain.masked_attention(trace["decoder.1.self"], 0).reasons
        np.testing.assert_array_equal(mask_view(app)["reasons"], own.ravel())
        if locale == "en-US":
            assert ("The model itself uses this mask" in said(app)) == (layer == 1)


def test_a_cell_painted_in_the_layers_with_a_window_stays_in_the_others(open_app: Open, mixed: Checkpoint) -> None:
    app = open_app(MASKS, model="models/mixed", text=TEXT, layer=1, part="paint")
    app = next(button for button in app.button if button.key == "masks.open").click().run()
    assert not app.exception
    assert not np.any(mask_view(app)["reasons"])
    assert "that have this mask (1)" in said(app)
    box = next(box for box in app.selectbox if box.label == "Layer")
    app = box.set_value(2).run()  # the same cells, now of the other layers
    assert not app.exception
    assert np.any(mask_view(app)["reasons"])


def test_leakage_runs_with_each_layers_own_mask(open_app: Open, mixed: Checkpoint) -> None:
    """A change travels on through layers without a window: every later output moves."""
    n = len(mixed.encode(TEXT))
    for model, last in (("mixed", n), ("mistral", min(n, 1 + 3 * (WINDOW - 1)))):
        app = open_app(MASKS, model=f"models/{model}", text=TEXT, part="leak", dials="masks.at:0")
        assert not app.exception
        assert f"{last} of {n} outputs changed" in said(app)


def test_heads_are_measured_against_what_they_see(open_app: Open, mixed: Checkpoint) -> None:
    n = len(mixed.encode(TEXT))
    for layer, sees in ((0, (n + 1) / 2), (1, WINDOW - WINDOW * (WINDOW - 1) / 2 / n)):
        app = open_app(HEADS, model="models/mixed", text=TEXT, layer=layer, part="all")
        assert not app.exception
        assert f"A query here sees {sees:.1f} keys on average" in said(app)


@pytest.mark.parametrize(("locale", "saving"), [("en-US", "instead of"), ("zh-CN", "而不是")])
def test_generation_past_the_window(open_app: Open, mixed: Checkpoint, locale: str, saving: str) -> None:
    app = open_app(GENERATION, locale=locale, model="models/mixed", text=TEXT)
    assert not app.exception
    assert not app.error
    found = column(app, "vizformer_player", "decoder_reasons")
    n = int((len(found) / 3) ** 0.5)
    assert n > len(mixed.encode(TEXT))
    np.testing.assert_array_equal(found.reshape(3, n, n)[1], reasons(n, WINDOW))
    assert saving in said(app)
    app = open_app(HEADS, locale=locale, model="models/mixed", text=TEXT, part="groups")
    assert saving in said(app)
    assert len(tables(app)) > 0


@pytest.mark.parametrize(
    ("locale", "report", "box"),
    [
        ("en-US", "sliding window (layers: 1): a query sees only", "(layers: 1), also all but the latest 4"),
        ("zh-CN", "滑动窗口（层：1）", "滑动窗口的层（1）"),
    ],
)
def test_the_report_and_the_map_name_the_window(open_app: Open, locale: str, report: str, box: str) -> None:
    assert report in said(open_app(REPORT, locale=locale, model="models/mixed"))
    app = open_app(MAP, locale=locale, model="models/mixed", text=TEXT, dials="map.box:decoder.mask")
    assert not app.exception
    assert box in said(app)
