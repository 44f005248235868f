"""Whatever a link says is read or refused in words: no field, of no page, loses the page for it."""

import math
from dataclasses import fields

import pytest
from hypothesis import example, given
from hypothesis import strategies as st_

from vizformer.messages import Message
from vizformer.web.link import link_settings, state
from vizformer.web.link.link_settings import whole
from vizformer.web.link.view import LARGEST, View, link_name

NAMES = [link_name(field) for field in fields(View)]
NUMBERS = st_.one_of(
    st_.sampled_from(
        [
            "",
            "0",
            "-0",
            "-1",
            "+1",
            "00",
            "1_0",
            " 1",
            "1 ",
            "1\n",
            "0x1",
            "1e3",
            "1e39",
            "1e400",
            "inf",
            "-inf",
            "nan",
            "NaN",
            "Infinity",
            "٣",
            "３",
            "²",
            "१२",
            "①",
            "9" * 9,
            "9" * 18,
            "9" * 19,
            "9" * 40,
            "9" * 4301,
            "9" * 5000,
            "0" * 9 + "9" * 5000,
            "0" * 5000,
            "1." + "9" * 5000,
            "1e" + "9" * 5000,
            "None",
            "null",
            "\x00",
            "1\x00",
        ]
    ),
    st_.integers().map(str),
    st_.floats().map(str),
)
PIECES = st_.one_of(
    NUMBERS,
    st_.sampled_from(
        [
            "@",
            "=",
            "!",
            ";",
            ",",
            ":",
            "~",
            ".",
            "encoder.0.self.q",
            "encoder.0.pre",
            "decoder.0.self.mask",
            "!unscaled",
            "!t=",
            "positions.pairs",
            "qkv.seed",
            "masks.kind",
            "tokens.at",
            "sampling",
            "t",
            "k",
            "s",
            "w",
            "train-",
            "models/",
            "upload/",
            "hub/",
            "path/",
            "lang",
            "en",
            "zh",
        ]
    ),
    st_.text(max_size=8),
)
HOSTILE = st_.one_of(NUMBERS, st_.lists(PIECES, max_size=12).map("".join), st_.text(max_size=400))


def read(parameters):
    """The view that a link says, and that the link of this view says the same again."""
    view, notices = state._read(parameters)
    assert all(isinstance(notice, Message) and str(notice) for notice in notices)
    assert len(notices) <= len(parameters)
    again, none = state._read(state._write(view))
    assert not none, f"our own link is refused: {state._write(view)}"
    return view, again


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", NAMES)
@given(value=HOSTILE)
def test_any_value_of_any_field_is_read_or_refused_in_words(name, value):
    view, again = read({name: value})
    typed = ("text", "target", "second", "third", "memory", "batch", "model")
    if name not in typed:  # of which a link holds only the beginning
        assert again == view
    for field in ("layer", "head", "query", "position", "step", "new"):
        number = getattr(view, field)
        assert number is None or 0 <= number <= LARGEST


@given(st_.dictionaries(st_.sampled_from(NAMES), HOSTILE))
def test_all_fields_at_once(parameters):
    read(parameters)


@pytest.mark.parametrize("name", ["layer", "head", "query", "position", "step", "new"])
@pytest.mark.parametrize("value", ["0" * 9 + "9" * 5000, "9" * 5000, "٣", "²", "-1", "1e3", "100000", "000000001"])
def test_indices_are_small_whole_numbers(name, value):
    view, [notice] = state._read({name: value})
    assert getattr(view, name) == getattr(View(), name)
    assert "whole number" in str(notice)


@given(NUMBERS, st_.integers(0, 10**12))
@example("9" * 5000, 10)
def test_whole_numbers_are_read_exactly_or_not_at_all(text, largest):
    number = whole(text, largest)
    assert number is None or (0 <= number <= largest and int(text) == number)
    assert whole(str(largest), largest) == largest
    assert whole(str(largest + 1), largest) is None


@given(HOSTILE, st_.sampled_from([True, 3, 0.5, "word"]))
@example("1e300", 0.5)
@example("1e400", 0.5)
def test_settings_of_lessons_are_what_the_page_asks_for(written, default):
    found = link_settings.value(written, default)
    assert type(found) is type(default)
    assert isinstance(found, str) or math.isfinite(found)
    assert isinstance(found, (str, float)) or abs(found) < 10**9
