"""Texts that stay on the server for a while: by a name that nobody can guess, bounded by bytes and by time."""

from vizformer.web.link import packed_text
from vizformer.web.link.packed_text import KeptTexts


def test_a_text_has_one_name_which_hangs_on_the_server() -> None:
    kept, other = KeptTexts(), KeptTexts()
    name = kept.keep("我有一只猫。")
    assert kept.keep("我有一只猫。") == name
    assert len(name) == packed_text.NAME
    assert kept.text(name) == "我有一只猫。"
    assert other.keep("我有一只猫。") != name
    assert other.text(name) is None
    assert kept.text("") is None


def test_what_was_not_looked_at_for_the_longest_goes_first() -> None:
    kept = KeptTexts(most_bytes=250)
    first, second = kept.keep("a" * 100), kept.keep("b" * 100)
    assert kept.text(first) == "a" * 100
    third = kept.keep("c" * 100)
    assert kept.text(second) is None
    assert kept.text(first) == "a" * 100
    assert kept.text(third) == "c" * 100
    large = kept.keep("d" * 1000)  # the newest stays: its page is on somebody's screen
    assert kept.text(large) == "d" * 1000
    assert kept.text(first) is None
    assert kept._bytes == 1000


def test_a_text_is_kept_for_some_hours_after_it_was_last_looked_at() -> None:
    now = 0.0
    kept = KeptTexts(clock=lambda: now)
    name = kept.keep("a")
    for _ in range(3):
        now += 3600 * packed_text.HOURS - 1
        assert kept.text(name) == "a"
    now += 3600 * packed_text.HOURS + 1
    assert kept.text(name) is None
    assert kept._bytes == 0


def test_what_is_no_text_in_utf_8_is_kept_all_the_same() -> None:
    kept = KeptTexts()
    assert kept.text(kept.keep("a\ud800b")) == "a?b"
