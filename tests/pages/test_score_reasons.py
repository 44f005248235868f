"""Attention, "Why does this head look there?": the box says the shares that the library computes."""

import pytest

from tests.bundled import load
from vizformer.analysis import score_split, signed_role, writer_tokens

PAGE = "pages/explore/attention.py"
BOX = "attention.why"


def opened(open_app, **link):
    app = open_app(PAGE, **link)
    app.session_state[BOX] = True
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
    said = f"This head copies: the logits of the tokens that it looks at rise, by {found.mean:+.3f} on average over "
    assert any(f"{said}{len(found.rows)} rows" in one.value for one in app.text)
