"""Back-translation: which texts are taken, and which pairs are kept."""

from recipes.translator import back_translation
from recipes.translator.training_set import Line, both_ways, write_parts
from tests.translation.everyday import sentences


def test_what_is_known_or_judged_by_is_not_taken(tmp_path):
    lines = {"train": both_ways("我有一只猫。", "I have a cat.", "tatoeba"), "valid": (), "test": ()}
    write_parts(lines, tmp_path)
    judged = next(one.text for one in sentences("en-zh") if len(one.text.split()) in range(4, 13))
    texts = ["I have a cat.", "i have a cat!", judged, "Too short.", "The train was full this morning."]
    assert back_translation.candidates(texts, tmp_path, range(4, 13)) == ["The train was full this morning."]


def test_a_pair_is_kept_that_finds_its_way_back(monkeypatch):
    said = {
        "The train was full this morning.": "今天早上火车很挤。",
        "今天早上火车很挤。": "The train was very full this morning.",
        "He plays chess with his aunt.": "他玩。",
        "他玩。": "He plays.",
        "Nobody says this at all.": "",
        "": "",
    }
    monkeypatch.setattr(back_translation, "translate_all", lambda _, texts, **__: [said[text] for text in texts])
    texts = [text for text in said if text.endswith(".")]
    first = texts[0]
    assert back_translation.round_trips(None, texts) == [Line("zh-en", said[first], first, "back_translation")]
