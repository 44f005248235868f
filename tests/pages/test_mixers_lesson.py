"""The lesson After 2017: what is on the screen is what the library computes, and the code on it runs."""

import numpy as np
import pytest

from tests.pages.conftest import Open
from tests.pages.reading import array, chart, number, run, said, tables
from tests.pages.test_questions import enter, right
from tests.refs import subject
from vizformer.analysis.costs.state_bytes import kept_bytes, qwen3_next
from vizformer.analysis.heads.small_mixers import MIXERS, mixed, mixer_cost
from vizformer.explain.mixers_by_hand import sink_row, two_latents, two_routed, two_steps, two_writes
from vizformer.web.lessons.mixers.limits import trainings
from vizformer.web.words.labels import size

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


@pytest.mark.parametrize(("locale", "divided"), [("en-US", 1), ("zh-CN", 0)])
def test_experts_by_hand(open_app: Open, locale: str, divided: int) -> None:
    dials = f"mixers.k:3~mixers.turn:45~mixers.divided:{divided}"
    app = open_app(PAGE, locale=locale, part="experts", dials=dials, **LINK)
    assert not app.exception
    found = two_routed(45, 3, renormalised=bool(divided))
    drawn = array(chart(app, 0)["data"][0]["z"]).astype(float)
    np.testing.assert_allclose(drawn[::2], found.probabilities, atol=1e-6)
    np.testing.assert_allclose(drawn[1::2], found.weights, atol=1e-6)
    (rows,) = tables(app)
    assert [number(row[3]) for row in rows] == pytest.approx([*found.weights[1], found.weights[1].sum()], abs=6e-5)
    assert [number(one) for one in rows[-1][4].split(", ")] == pytest.approx(found.y[1].tolist(), abs=0.006)
    np.testing.assert_allclose(run(app.code[0].value)["y"].numpy(), found.y, atol=1e-5)
    assert enter(app, "mixers", "mixture", 4).startswith(("**Right.**", "**答对了。**"))


def test_bytes_against_length(open_app: Open) -> None:
    app = open_app(PAGE, part="memory", dials="mixers.n:16384", **LINK)
    assert not app.exception
    lines = [one for one in chart(app, 0)["data"] if one["mode"] == "lines"]
    at = array(lines[0]["x"]).tolist().index(16384)
    kept = kept_bytes(qwen3_next(), 16384)
    cache, state = (array(lines[order]["y"])[at] * 2**20 for order in (6, 7))
    assert cache == pytest.approx(kept.cache, rel=1e-6)
    assert state == pytest.approx(kept.state, rel=1e-6)
    assert array(lines[4]["y"])[at] * 2**20 == pytest.approx(16384 * 70_272, rel=1e-6)  # DeepSeek-V3, see state_bytes
    assert np.ptp(array(lines[7]["y"])) == 0
    done = run(app.code[0].value)
    assert (done["cache"], done["state"]) == (2048 * 16384, 2**21)
    assert "Your model, stories" in said(app)
    assert right(enter(app, "mixers", "equal", 1024))
    app = app.button(key="mixers.open").click().run()
    assert not app.exception
    assert "Your model, hybrid" in said(app)
    assert "state and cache together" in said(app)
    assert "mixers.open" not in {button.key for button in app.button}


@pytest.mark.parametrize("mixer", ["delta", "latent", "space", "convolution"])
def test_every_mixer_for_one_sentence(open_app: Open, mixer: str) -> None:
    app = open_app(PAGE, part="comparison", dials=f"mixers.mixer:{mixer}~mixers.head:1~mixers.n:512", **LINK)
    assert not app.exception
    ids = tuple(token.id for token in subject("stories", LINK["text"]).tokens if not token.special)
    found = mixed(mixer, ids)
    drawn = array(chart(app, 0)["data"][0]["z"]).astype(float)
    np.testing.assert_allclose(np.nan_to_num(drawn), found.maps[1], atol=1e-5)
    (rows,) = tables(app)
    assert len(rows) == len(MIXERS)
    for row, kind in zip(rows, MIXERS, strict=True):
        cost = mixer_cost(kind, 512)
        assert [number(row[2]), number(row[3])] == [cost.products, cost.kept]
        assert float(row[5]) < 1e-6


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


@pytest.mark.parametrize("task", ["recall", "copy"])
def test_small_trainings_by_mixer(open_app: Open, task: str) -> None:
    app = open_app(PAGE, part="limits", dials=f"mixers.task:{task}~mixers.length:16", **LINK)
    assert not app.exception
    found = trainings()[task]
    lines = [one for one in chart(app, 0)["data"] if one["mode"] == "lines"]
    dots = [one for one in chart(app, 0)["data"] if one["mode"] == "markers"]
    (rows,) = tables(app)
    for line, dot, row, one in zip(lines, dots, rows, found, strict=True):
        np.testing.assert_allclose(array(line["y"]), one.mean, atol=1e-6)
        at = one.lengths.index(16)
        shown = array(dot["y"])[array(dot["x"]) == 16]
        np.testing.assert_allclose(shown, one.accuracies[:, at], atol=1e-6)
        kept = kept_bytes(one.config, 16)
        assert row[1:3] == [size(kept.cache), size(kept.state)]
        assert float(row[3]) == pytest.approx(one.mean[at], abs=0.006)
    done = run(app.code[0].value)
    read = done["read"]
    np.testing.assert_allclose(read[2], 0.6 * read[0] + 0.8 * read[1], atol=1e-5)
    delta = next(one for one in found if one.mixer == "delta")
    assert (*delta.config.state_dims, delta.lengths[-1]) == (8, 32, 32)  # of which the words of the part speak
    assert right(enter(app, "mixers", "rows", 8))
