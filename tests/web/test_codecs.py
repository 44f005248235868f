"""Every codec of the link: what is written is read again, and of any other text nothing but a value or a refusal comes."""

import base64
import zlib
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st_

from tests.web.test_hostile_links import HOSTILE
from vizformer.components.player import Taken
from vizformer.web.lessons.masks import mask_painting
from vizformer.web.link import branch, edits, generation_settings, line_settings, link_settings, packed_text
from vizformer.web.link.link_settings import Codec, UnusableError
from vizformer.web.link.packed_text import KeptTexts

NUMBERS = st_.floats(-3.5e38, 3.5e38)
INDEX = st_.lists(st_.integers(0, 999_999), min_size=1, max_size=4).map(tuple)
SITES = st_.sampled_from(["encoder.0.self", "decoder.11.cross", "decoder.2.self"])
WORDS = st_.from_regex(r"[a-z]{1,20}\.[a-z_]{1,20}", fullmatch=True)
CELLS = st_.integers(0, mask_painting.SIDE - 1)
EDITS = st_.one_of(
    st_.builds(edits.cell, SITES.map("{}.q".format), INDEX, NUMBERS | st_.just(-float("inf"))),
    st_.builds(edits.unscaled, SITES),
    st_.builds(edits.temperature, SITES, st_.floats(0.01, 1000)),
)
LIMITS = generation_settings.LIMITS
SETTINGS = st_.builds(
    generation_settings.Settings,
    strategy=st_.sampled_from(generation_settings.STRATEGIES),
    new=st_.integers(*map(int, LIMITS["new"])),
    temperature=st_.integers(0, 200).map(lambda n: n / 100),
    top_k=st_.integers(*map(int, LIMITS["top_k"])),
    top_p=st_.integers(0, 100).map(lambda n: n / 100),
    min_p=st_.integers(0, 100).map(lambda n: n / 100),
    penalty=st_.integers(50, 200).map(lambda n: n / 100),
    seed=st_.integers(*map(int, LIMITS["seed"])),
    width=st_.integers(*map(int, LIMITS["width"])),
    alpha=st_.integers(0, 20).map(lambda n: n / 10),
)
TAKEN = st_.dictionaries(st_.integers(0, 9999), st_.integers(0, 10**6)).map(
    lambda ids: tuple(Taken(step, ids[step]) for step in sorted(ids))
)
HEADS = st_.sets(st_.integers(0, 9999), min_size=1, max_size=256).map(lambda heads: tuple(sorted(heads)))
LINES = st_.builds(
    line_settings.LineSettings,
    heads=st_.none() | HEADS,
    threshold=st_.none() | st_.integers(0, 100).map(lambda n: n / 100),
    key=st_.none() | st_.integers(0, 99_999),
    start=st_.none() | st_.integers(0, 99_999),
) | st_.just(line_settings.LineSettings(let_go=True))
VALUES = {
    "edits": (edits, st_.lists(EDITS, max_size=edits.LONGEST).map(tuple)),
    "generation settings": (generation_settings, SETTINGS),
    "tokens taken by hand": (branch, TAKEN),
    "lines": (line_settings, LINES),
    "settings of lessons": (
        link_settings,
        st_.dictionaries(
            WORDS, st_.from_regex(r"[A-Za-z0-9_.,+-]{0,40}", fullmatch=True), max_size=link_settings.LONGEST
        ),
    ),
    "painted cells": (mask_painting, st_.lists(st_.tuples(CELLS, CELLS), unique=True).map(sorted).map(tuple)),
    "typed text": (packed_text, st_.text(max_size=packed_text.AS_IT_IS)),
}
CODECS = {name: codec for name, (codec, __) in VALUES.items()}


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", VALUES)
@given(data=st_.data())
def test_what_a_codec_writes_it_reads_again(name: str, data: st_.DataObject) -> None:
    codec, values = VALUES[name]
    value = data.draw(values)
    assert codec.read(codec.write(value)) == value


@pytest.mark.sample(1)
@pytest.mark.parametrize("codec", CODECS.values(), ids=list(CODECS))
@given(text=HOSTILE)
@example(text="encoder.0.self.q@" + "9" * 5000 + ",0,0=1")
@example(text="encoder.0.self.q@0,0,0=" + "9" * 5000)
@example(text="encoder.0.self.q@0,0,0=1e" + "9" * 5000)
@example(text="encoder.0.self.q@٣,0,0=٣")
@example(text="encoder.0.self!unscaled;" * 41)
@example(text="a.b:1~" * 100_000)
@example(text="x" * 100_000)
@example(text="0:" + "9" * 100_000)
def test_any_text_is_read_or_refused(codec: Codec[object], text: str) -> None:
    value = None
    with suppress(UnusableError):
        value = codec.read(text)
    if codec is packed_text and len(text) > packed_text.MOST_BYTES // 3:
        return  # of which a link holds the beginning
    assert value is None or codec.read(codec.write(value)) == value


def test_a_later_item_replaces_the_one_about_the_same_number() -> None:
    text = edits.add(
        edits.add("encoder.0.self!t=2", edits.cell("encoder.0.self.q", (0, 1, 2), 5.0)), edits.unscaled("e")
    )
    assert text == "encoder.0.self!t=2;encoder.0.self.q@0,1,2=5;e!unscaled"
    assert (
        edits.add(text, edits.temperature("encoder.0.self", 3.0))
        == "encoder.0.self.q@0,1,2=5;e!unscaled;encoder.0.self!t=3"
    )
    assert edits.undo(text) == "encoder.0.self!t=2;encoder.0.self.q@0,1,2=5"
    assert edits.remove(text, edits.unscaled("e")) == edits.undo(text)


DOCUMENT = " ".join(f"In the year {year} there were {year * 7} cats and a small dog." for year in range(1, 180))


@pytest.mark.parametrize(
    "text", [DOCUMENT, "我们今天去公园看书，看见一只很小的猫。" * 90, "~z", "~zA", "~zz" * 200, "~k", "~kA"]
)
def test_long_texts_travel_whole_and_short(text: str) -> None:
    written = packed_text.write(text)
    assert packed_text.read(written) == text
    assert packed_text.holds(text)
    assert len(written) <= packed_text.MOST_PACKED
    assert written.isascii()


def test_what_a_link_cannot_hold_is_kept_and_stands_in_it_with_its_beginning(monkeypatch) -> None:
    noise = "".join(map(chr, range(0x4E00, 0x8E00)))
    for text in (noise, noise[::-1] + DOCUMENT):
        assert not packed_text.holds(text)
        written = packed_text.write(text)
        assert written == packed_text.write(text)
        assert len(written) < packed_text.AS_IT_IS + 30
        assert packed_text.read(written) == text
        assert not packed_text.is_gone(written)
        with monkeypatch.context() as later:
            later.setattr(packed_text, "KEPT", KeptTexts())  # of another server
            assert packed_text.read(written) == text[: packed_text.AS_IT_IS]
            assert packed_text.is_gone(written)
    with pytest.raises(UnusableError):
        packed_text.read("~k" + 22 * "A")
    larger = noise * 3  # than any model reads
    assert packed_text.write(larger) == packed_text.read(packed_text.write(larger)) == larger[: packed_text.AS_IT_IS]


@pytest.mark.parametrize(
    "damage", [lambda t: t[:-8], lambda t: t + "AAAA", lambda t: t[:40] + "A" + t[41:], lambda t: "~z!!"]
)
def test_a_damaged_packed_text_is_refused(damage) -> None:
    with pytest.raises(UnusableError):
        packed_text.read(damage(packed_text.write(DOCUMENT)))


def test_a_packed_text_that_grows_is_refused_before_it_has_grown() -> None:
    deflating = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    bomb = deflating.compress(b"a" * 50_000_000) + deflating.flush()
    with pytest.raises(UnusableError):
        packed_text.read("~z" + base64.urlsafe_b64encode(bomb).decode())
