"""What a person sees for a vocabulary entry."""

import pytest

from vizformer.text.pieces import Spelling, piece_bytes, readable


def byte_level(raw: bytes) -> str:
    """GPT-2's letters for bytes, from its rule: printable Latin-1 as itself, the rest counted up from U+0100."""
    shown = [b for b in range(256) if chr(b).isprintable() and b not in (0x20, 0xA0, 0xAD)]
    letters = {b: chr(b) for b in shown} | {
        b: chr(0x100 + i) for i, b in enumerate(b for b in range(256) if b not in shown)
    }
    return "".join(letters[b] for b in raw)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (" cat", "cat"),
        ("ing", "ing"),
        ("我", "我"),
        (" 我们", "我们"),
        ("🐱", "🐱"),
        (" ", "␣"),
        ("  ", "␣"),
        ("a b", "a␣b"),
        ("\n", "⏎"),
        ("\n\n", "⏎⏎"),
        ("\t", "⇥"),
        ("\x00", "⟨00⟩"),
        ("\x1b[", "⟨1B⟩["),
        ("\x7f", "⟨7F⟩"),
        ("a\u200db", "a⟨E2 80 8D⟩b"),  # zero-width joiner
        ("\u202e", "⟨E2 80 AE⟩"),  # turns the direction of everything after it
        ("\ufeff", "⟨EF BB BF⟩"),
        ("שלום", "שלום"),
        ("Ġ", "Ġ"),  # a person may type the marker itself
        ("▁##", "▁##"),
        ("<b>&amp;", "<b>&amp;"),
    ],
)
def test_byte_level(text: str, shown: str) -> None:
    piece = byte_level(text.encode())
    assert piece_bytes(piece, "byte-level") == text.encode()
    assert readable(piece, "byte-level") == shown


def test_every_byte_has_its_letter() -> None:
    for byte in range(256):
        assert piece_bytes(byte_level(bytes([byte])), "byte-level") == bytes([byte])


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("我".encode()[:2], "⟨E6 88⟩"),
        ("我".encode()[1:], "⟨88⟩⟨91⟩"),
        ("🐱".encode()[:1], "⟨F0⟩"),
        (b" " + "我".encode()[:1], "⟨E6⟩"),
        ("a我".encode()[:2] + b"b", "a⟨E6⟩b"),
        ("有".encode() + "我".encode()[:2], "有⟨E6 88⟩"),
        (b"\xff\xfe", "⟨FF⟩⟨FE⟩"),
    ],
)
def test_parts_of_characters_are_shown_as_bytes(raw: bytes, shown: str) -> None:
    assert readable(byte_level(raw), "byte-level") == shown


@pytest.mark.parametrize(
    ("piece", "spelling", "shown"),
    [
        ("▁cat", "metaspace", "cat"),
        ("ing", "metaspace", "ing"),
        ("▁", "metaspace", "␣"),
        ("▁▁", "metaspace", "␣"),
        ("<0xE6>", "metaspace", "⟨E6⟩"),
        ("<0x0A>", "metaspace", "⏎"),
        ("<0x41>", "metaspace", "A"),
        ("<0xZZ>", "metaspace", "<0xZZ>"),
        ("<0x+1>", "metaspace", "<0x+1>"),
        ("##ing", "wordpiece", "ing"),
        ("##", "wordpiece", "##"),
        ("é", "wordpiece", "é"),
        ("▁cat", "wordpiece", "▁cat"),
        ("Ġcat", "plain", "Ġcat"),
        ("##ing", "plain", "##ing"),
        ("猫", "byte-level", "猫"),  # not byte-level letters: an entry that was added as it is
    ],
)
def test_other_spellings(piece: str, spelling: Spelling, shown: str) -> None:
    assert readable(piece, spelling) == shown
