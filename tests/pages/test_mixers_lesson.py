"""The lesson After 2017: what is on the screen is what the library computes, and the code on it runs."""

import numpy as np
import pytest

from tests.pages.conftest import Open
from tests.pages.reading import array, chart, number, run, said, tables
from tests.pages.test_questions import enter
from tests.refs import subject
from vizformer.explain.mixers_by_hand import MIXERS, mixed, mixer_cost, sink_row, two_latents, two_steps, two_writes

PAGE = "pages/learn/mixers.py"
LINK = dict(model="stories", text="The cats are here")


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_two_tokens_by_hand(open_app: Open, locale: str) -> None:
    dials = "mixers.angle:60~mixers.beta:0.5~mixers.keep:0.9"
    app = open_app(PAGE, locale=locale, part="delta", dials=dials, **LINK)
    assert not app.exception
    found = two_writes(60, 0.5, 0.9)
    wanted, delta, total = chart(app, 0)["data"]
    for drawn, rows in ((wanted, found.values), (delta, found.read), (total, found.read_sum)):
        np.testing.assert_allclose(np.stack([array(drawn["x"]), array(drawn["y"])], axis=1), rows, atol=1e-6)
        assert drawn["text"] == ["The", "cats"]
    for row, read in zip(tables(app)[-1], found.read, strict=True):
        assert [number(cell) for cell in row[2].split(", ")] == pytest.approx(read.tolist(), abs=0.006)
    done = run(app.code[0].value)
    np.testing.assert_allclose(done["read"].numpy(), found.read, atol=1e-5)
    np.testing.assert_allclose(done["read_sum"].numpy(), found.read_sum, atol=1e-5)


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_latent_attention_by_hand(open_app: Open, locale: str) -> None:
    app = open_app(PAGE, locale=locale, part="latent", dials="mixers.width:3~mixers.heads:4", **LINK)
    assert not app.exception
    found = two_latents(3, 4)
    drawn = array(chart(app, 0)["data"][0]["z"]).astype(float)
    for half in (drawn[:, :2], drawn[:, 2:]):
        np.testing.assert_allclose(half, found.scores.reshape(8, 2), atol=1e-6)
    by_hand, costs = tables(app)
    assert [[number(cell) for cell in row[3:]] for row in by_hand] == [[one, one] for one in found.scores[0, 1]]
    assert [number(one) for one in by_hand[0][1].split(", ")] == found.latents[0].tolist()
    # Of 4 heads with 2 numbers: keys and values; the latent, of which keys are made for each score; the latent alone.
    assert [[number(cell) for cell in row[1:]] for row in costs] == [[16, 8], [3, 4 * 2 * 3 + 8], [3, 12]]
    done = run(app.code[0].value)
    for ours, written in (("scores", "scores"), ("scores", "absorbed"), ("mixed", "mixed"), ("mixed", "same")):
        np.testing.assert_allclose(done[written].numpy(), getattr(found, ours)[0], atol=1e-5)
    assert enter(app, "mixers", "score", 7).startswith(("**Right.**", "**答对了。**"))
    assert "576" in enter(app, "mixers", "kept", 32768)


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_a_state_space_by_hand(open_app: Open, locale: str) -> None:
    dials = "mixers.angle:120~mixers.step:0.5~mixers.rate:1.0~mixers.skip:-0.25"
    app = open_app(PAGE, locale=locale, part="space", dials=dials, **LINK)
    assert not app.exception
    found = two_steps(120, 0.5, 1.0, -0.25)
    drawn = array(chart(app, 0)["data"][0]["z"]).astype(float)
    np.testing.assert_allclose(drawn, found.map, atol=1e-6)
    for row, read in zip(tables(app)[-1], found.read, strict=True):
        for cell in row[2:4]:
            assert [number(one) for one in cell.split(", ")] == pytest.approx(read.tolist(), abs=0.006)
    done = run(app.code[0].value)
    for name in ("read", "same"):
        np.testing.assert_allclose(done[name].numpy(), found.read, atol=1e-5)
    np.testing.assert_allclose(done["M"].numpy(), found.map, atol=1e-5)
    assert enter(app, "mixers", "entry", 0.25).startswith(("**Right.**", "**答对了。**"))


@pytest.mark.parametrize("mixer", ["delta", "latent", "space", "sink"])
def test_every_mixer_for_one_sentence(open_app: Open, mixer: str) -> None:
    app = open_app(PAGE, part="comparison", dials=f"mixers.mixer:{mixer}~mixers.head:1~mixers.n:512", **LINK)
    assert not app.exception
    ids = tuple(token.id for token in subject("stories", LINK["text"]).tokens if not token.special)
    maps, __ = mixed(mixer, ids)
    drawn = array(chart(app, 0)["data"][0]["z"]).astype(float)
    np.testing.assert_allclose(np.nan_to_num(drawn), maps[1], atol=1e-5)
    (rows,) = tables(app)
    assert len(rows) == len(MIXERS)
    for row, kind in zip(rows, MIXERS, strict=True):
        assert (number(row[2]), number(row[3])) == mixer_cost(kind, 512)
        assert float(row[5]) < 1e-12


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_a_row_through_the_softmax_with_a_sink(open_app: Open, locale: str) -> None:
    dials = "mixers.lower:3~mixers.score:0.5"
    link = {**LINK, "kind": "decoder", "layer": 1, "head": 2, "query": 3}
    app = open_app(PAGE, locale=locale, part="sink", dials=dials, **link)
    assert not app.exception
    of = subject("stories", LINK["text"])
    found = sink_row(of.trace["decoder.1.self"], 2, 3, 3.0, 0.5)
    drawn = array(chart(app, 0)["data"][0]["z"]).astype(float)
    seen = np.isfinite(found.scores)
    np.testing.assert_allclose(drawn[0, :-1], found.plain[seen], atol=1e-5)
    np.testing.assert_allclose(drawn[1], [*found.weights[seen], found.share], atol=1e-5)
    done = run(app.code[0].value)
    np.testing.assert_allclose(done["weights"].numpy(), found.weights, atol=1e-4)
    assert f"{found.share:.1%}" in said(app)
    assert "Number(value" not in said(app)
    assert "0.75" in enter(app, "mixers", "quarter", 0.75)
