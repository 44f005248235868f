"""Attention, "Why does this head look there?": the box says the shares that the library computes."""

import numpy as np
import pytest

from tests.bundled import load
from tests.pages.reading import array, chart
from vizformer.analysis import effective_attention, score_split, signed_role, writer_tokens
from vizformer.analysis.circuits import token_scores
from vizformer.web.pages.attention.heads import DRAWN

PAGE = "pages/explore/attention.py"
BOX = "attention.why"


def opened(open_app, box=BOX, **link):
    app = open_app(PAGE, **link)
    app.session_state[box] = True
    app.run()
    assert not app.exception
    assert not app.error
    return app


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_the_score_its_writers_and_their_tokens(open_app, locale) -> None:
    link = dict(model="stories", text="The dog saw the cat and the dog", kind="decoder", layer=3, head=2, query=8)
    app = opened(open_app, locale=locale, **link)
    checkpoint = load("stories")
    trace = checkpoint.trace(link["text"])
    key = int(trace["decoder.3.self"].pattern(2)[8].argmax())
    split = score_split(checkpoint, trace, "decoder.3.self", 2, 8, key, against_mean=True)
    assert any(f"**{split.score:.3f}**" in one.value for one in app.markdown)
    assert [one.value for one in app.success if "1e-" in one.value or "e-0" in one.value]
    heads = [(abs(split.of("key")[i]), w) for i, w in enumerate(split.keys) if w.head is not None]
    strongest = max(heads, key=lambda one: one[0])[1]
    came = writer_tokens(checkpoint, trace, split, "key", strongest)
    tokens = [token.text for token in trace.tokens["decoder"]]
    most = max(range(len(tokens)), key=lambda i: abs(came[i]))
    number = f"{came[most]:+.3f}".replace("-", "−")
    assert any(f"“{tokens[most]}” {number}" in one.value for one in app.text)
    assert any("score_split(checkpoint, trace, 'decoder.3.self', 2, 8" in one.value for one in app.code)


def test_a_blocked_key_is_said(open_app) -> None:
    app = opened(open_app, model="stories", text="The dog saw the cat", kind="decoder", layer=1, head=0, query=1, key=4)
    assert [one for one in app.info if "mask blocks this key" in one.value]


@pytest.mark.parametrize("site", ["encoder", "decoder", "cross"])
def test_every_kind_of_attention(open_app, site) -> None:
    app = opened(open_app, model="zh-en", text="他喜欢喝水。", site=site, layer=2, head=1)
    assert len(app.get("plotly_chart")) >= 2 or app.success


def test_the_box_says_what_the_head_does_to_the_logit(open_app) -> None:
    text = "The boy lost his hat and the boy lost his"
    found = signed_role(load("stories"), [load("stories").trace(text)], "decoder.3.self", 3)
    assert found.role == "copying"
    app = opened(open_app, model="stories", text=text, kind="decoder", layer=3, head=3)
    said = f"This head copies: it raises the logits of the tokens to which it attends, by {found.mean:+.3f} on average over "
    assert any(f"{said}{len(found.rows)} rows" in one.value for one in app.text)


def test_the_box_reads_the_weights_as_tokens(open_app) -> None:
    text, checkpoint = "The boy lost his hat and the boy lost his", load("stories")
    tokens = checkpoint.trace(text).tokens["decoder"]
    app = opened(open_app, model="stories", text=text, kind="decoder", layer=3, head=3, query=8, key=2)
    likes = token_scores(checkpoint, "qk", 3, 3, tokens[8].id, 6)
    writes = token_scores(checkpoint, "ov", 3, 3, tokens[2].id)
    best, lowered = (checkpoint.tokenizer.tokens([int(one.argmax())])[0].text for one in (likes, -writes))
    place = 1 + int((writes > writes[tokens[2].id]).sum())
    said = " ".join(one.value for one in app.text)
    assert f"the query “{tokens[8].text}” has the largest scores for “{best}”" in said
    assert f"most and lowers those of “{lowered}”" in said
    assert f"“boy” itself has rank {place:,} of {len(writes):,}." in said


def test_what_of_the_weights_is_effective(open_app) -> None:
    text = "Once upon a time there was a little girl who lived in a small house with her mother and her father and " * 2
    text = (text + text).strip()
    app = opened(open_app, "attention.effective", model="stories", text=text, kind="decoder", layer=1, head=2)
    trace = load("stories").trace(text)
    found = effective_attention(trace, "decoder.1.self", 2)
    row = len(found.weights) - 1
    assert found.free[row] > 0
    key = int(abs(found.weights[row] - found.effective[row]).argmax())
    number = f"{found.effective[row, key]:.3f}".replace("-", "−")
    assert any(f"sees **{found.free[row]}** more" in one.value and f"**{number}**" in one.value for one in app.markdown)
    short = opened(open_app, "attention.effective", model="stories", text="The cat", kind="decoder", layer=1, head=2)
    assert [one for one in short.markdown if one.value.startswith("Every weight of")]
    assert len(app.get("plotly_chart")) == len(short.get("plotly_chart")) + 1  # (the same map would be drawn twice)


def test_a_long_map_of_effective_weights_has_the_key_that_is_named(open_app) -> None:
    """Few queries and many keys: each side is cut by itself."""
    text, target = "我妹妹昨天在学校的图书馆里借了一本很有意思的书，" * 6, "My sister"
    link = dict(model="zh-en", text=text, target=target, site="cross", layer=1, head=2, query=1)
    app = opened(open_app, "attention.effective", **link)
    found = effective_attention(load("zh-en").trace(text, target=target), "decoder.1.cross", 2)
    lost = np.abs(found.weights[1] - found.effective[1])
    key, n = int(lost.argmax()), found.weights.shape[1]
    assert n > DRAWN > len(found.weights)
    assert found.free[1] > 0
    maps = [one["data"][0] for at in range(len(app.get("plotly_chart"))) if "z" in (one := chart(app, at))["data"][0]]
    (drawn,) = [array(one["z"]) for one in maps]
    first = min(max(0, key - DRAWN // 2), n - DRAWN)
    assert first <= key < first + DRAWN
    np.testing.assert_allclose(drawn, found.effective[:, first : first + DRAWN], atol=1e-5)
