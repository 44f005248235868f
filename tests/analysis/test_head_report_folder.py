"""The report as a folder of JSON: read back as it was, and refused with a clear message where it was changed."""

import io
import json
import struct
import zipfile

import numpy as np
import pytest

from tests import tiny
from vizformer.analysis import Corpus, head_report, read_report_folder, write_report_folder
from vizformer.analysis.corpus_heads import bundled_corpus, report_folder
from vizformer.analysis.corpus_heads.report_file import PER_HEAD, arrays_of, read_report
from vizformer.assets import asset
from vizformer.errors import VizformerError

TEXTS = (
    "cats and dogs, and cats",
    "I have a cat.",
    "猫和狗",
    "The cats are here. The cats",
    "她有两只狗。她有两只狗。",
)
MODELS = {
    "decoder-only": {},
    "decoder-only, shared keys": tiny.LLAMA,
    "encoder-decoder": {},
    "decoder-only, one head": {"n_heads": 1, "n_decoder_layers": 1},
    "decoder-only, layers of 6 and of 4 heads": tiny.HYBRID,
    "decoder-only, layers of 3 taps and of 4 heads": tiny.SHORT,
}


def measured(name="decoder-only"):
    architecture = name.partition(",")[0]
    checkpoint = tiny.checkpoint(architecture, vocab_size=320, max_positions=64, **MODELS[name])
    corpus = Corpus.of([f"{text}\t{text}" for text in TEXTS] if architecture == "encoder-decoder" else TEXTS, "five")
    return head_report(checkpoint, corpus), corpus, checkpoint


@pytest.fixture(scope="module")
def packed():
    report, corpus, _ = measured()
    return report_folder.packed_report(report, corpus)


def changed(packed, name, change):
    """The same file with one part changed: by a function of its content, or with other bytes; None leaves it out."""
    content = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(packed)) as old, zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as new:
        for one in old.namelist():
            said = old.read(one)
            if one == name and change is None:
                continue
            if one == name and callable(change):
                value = json.loads(said)
                value = change(value) or value
                said = json.dumps(value).encode()
            elif one == name:
                said = change
            new.writestr(one, said)
    return content.getvalue()


@pytest.mark.parametrize("name", MODELS)
def test_a_report_is_read_back_as_it_was_written(name, tmp_path):
    report, corpus, checkpoint = measured(name)
    path = tmp_path / "here" / "heads.zip"
    write_report_folder(report, corpus, path)
    again, texts = read_report_folder(path)
    assert (again.model, again.corpus, again.texts, again.given) == (report.model, "five", 5, 5)
    assert again.weights == checkpoint.key
    assert list(again.kinds) == list(report.kinds)
    for kind, found in report.kinds.items():
        assert again.kinds[kind].layer_heads == found.layer_heads
        assert np.array_equal(again.kinds[kind].similarity, found.similarity, equal_nan=True)
        for array, values in arrays_of(found).items():
            other = arrays_of(again.kinds[kind])[array]
            assert np.array_equal(other, values, equal_nan=values.dtype.kind == "f"), array
    assert again.csv() == report.csv()
    assert texts.passages == corpus.passages  # each is the strongest or in a tenth
    assert report_folder.packed_report(report, corpus) == path.read_bytes()


def test_other_programs_find_what_the_documentation_says(packed):
    report, *_ = measured()
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        about = json.loads(archive.read("report.json"))
        one = json.loads(archive.read("heads/decoder.0.1.json"))
        texts = json.loads(archive.read("texts.json"))
    found = report.kinds["decoder"]
    assert about["kinds"] == [{"kind": "decoder", "layers": 2, "heads": [4, 4], "key_value_heads": [4, 4]}]
    assert one["mean"]["entropy"] == float(found.mean["entropy"][0, 1])
    assert one["spread"]["copying"] is None  # NaN is no JSON
    assert texts[str(one["strongest"]["entropy"])]["text"] in TEXTS
    said = (asset().parent / "docs" / "head-report-format.md").read_text(encoding="utf-8")
    assert not {name.partition("/")[0] for name in PER_HEAD} - {word.strip("`") for word in said.split()}


def test_a_folder_of_version_1_is_read(packed):
    def before(about):
        about["kinds"][0].update(heads=4, key_value_heads=4)
        return about | {"version": 1}

    report, *_ = measured()
    again, _ = read_report_folder(changed(packed, "report.json", before))
    assert again.csv() == report.csv()


def nothing_else(value):
    return [value]


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("report.json", None, "report.json is missing"),
        ("texts.json", None, "texts.json is missing"),
        ("heads/decoder.0.0.json", None, "heads/decoder.0.0.json is missing"),
        ("report.json", b"{", "report.json is not as"),
        ("report.json", nothing_else, "report.json is not as"),
        ("report.json", b"\xff\xfe", "report.json is not as"),
        ("report.json", b"[" * 100_000, "report.json is not as"),
        ("report.json", b'{"format": ' + b"9" * 5000 + b"}", "report.json is not as"),
        ("report.json", lambda it: it | {"version": 3}, "another one"),
        ("report.json", lambda it: it | {"kinds": []}, "report.json is not as"),
        ("report.json", lambda it: it | {"given": 10**9}, "report.json is not as"),
        ("report.json", lambda it: it | {"model": "a" * 10_000}, "report.json is not as"),
        ("report.json", lambda it: it | {"kinds": it["kinds"] * 2}, "is not as"),
        ("report.json", lambda it: it["kinds"][0].update(layers=10**6), "report.json is not as"),
        ("report.json", lambda it: it["kinds"][0].update(key_value_heads=3), "report.json is not as"),
        ("report.json", lambda it: it["kinds"][0].update(heads=[4]), "report.json is not as"),
        ("report.json", lambda it: it["kinds"][0].update(heads=[4, 10**9]), "report.json is not as"),
        ("report.json", lambda it: it["kinds"][0].update(heads=[0, 0]), "report.json is not as"),
        ("report.json", lambda it: it["kinds"][0].update(kind="../../etc"), "report.json is not as"),
        ("heads/decoder.0.0.json", lambda it: it["mean"].pop("entropy"), "decoder.0.0.json is not as"),
        ("heads/decoder.0.0.json", lambda it: it["mean"].update(entropy="1"), "decoder.0.0.json is not as"),
        ("heads/decoder.0.0.json", b'{"mean": {"diagonal": NaN}}', "decoder.0.0.json is not as"),
        ("heads/decoder.0.0.json", lambda it: it["largest"].append(1), "decoder.0.0.json is not as"),
        ("heads/decoder.0.0.json", lambda it: it["strongest"].update(entropy=99), "is not as"),
        ("heads/decoder.0.0.json", lambda it: it.update(nearest=99), "is not as"),
        ("heads/decoder.0.0.json", lambda it: it.update(sign=2), "is not as"),
        ("heads/decoder.0.0.json", lambda it: it.update(picks=2**80), "is not as"),
        ("heads/decoder.0.0.json", lambda it: it["tokens"]["key"].__setitem__(0, "a" * 500), "is not as"),
        ("similarity/decoder.json", lambda it: it[:-1], "similarity/decoder.json is not as"),
        ("texts.json", lambda it: it | {"7": {"text": "", "target": ""}}, "texts.json is not as"),
        ("texts.json", lambda it: it | {"x": {"text": "", "target": ""}}, "texts.json is not as"),
        ("texts.json", b"[" + b"[]," * 1_000_000 + b"[]]", "texts.json is not as"),
    ],
)
def test_a_part_that_was_changed_is_refused(packed, name, change, said):
    with pytest.raises(VizformerError, match=said):
        read_report_folder(changed(packed, name, change))


def test_what_is_no_whole_zip_file_is_refused(packed, tmp_path):
    for content in (b"", b"no zip", packed[: len(packed) // 2], packed[:200] + b"\0" * 40 + packed[240:]):
        with pytest.raises(VizformerError, match=r"no whole ZIP file|is not as the format"):
            read_report_folder(content)
    with pytest.raises(VizformerError, match="There is no file"):
        read_report_folder(tmp_path / "none.zip")


def test_a_part_may_not_be_larger_than_all_may_be_whatever_the_file_says_of_it(packed, monkeypatch):
    monkeypatch.setattr(report_folder, "MOST_UNPACKED", 2**20)
    bomb = changed(packed, "texts.json", b" " * 2**24)  # 16 MiB in a few kB
    with pytest.raises(VizformerError, match="more than 1,048,576 bytes"):
        read_report_folder(bomb)
    directory = bomb.index(b"PK\x01\x02")
    at = bomb.index(b"texts.json", directory) - 46 + 24  # the size that the list of parts says
    lying = bomb[:at] + struct.pack("<I", 10) + bomb[at + 4 :]
    with pytest.raises(VizformerError, match="no head report"):
        read_report_folder(lying)


def test_bytes_and_parts_are_bounded(packed, monkeypatch, tmp_path):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for number in range(report_folder.MOST_HEADS + 17):
            archive.writestr(str(number), b"")
    with pytest.raises(VizformerError, match="too many parts"):
        read_report_folder(content.getvalue())
    monkeypatch.setattr(report_folder, "LARGEST", 1000)
    (tmp_path / "large.zip").write_bytes(packed)
    for source in (packed, tmp_path / "large.zip"):
        with pytest.raises(VizformerError, match="more than 1,000 bytes"):
            read_report_folder(source)


def test_more_heads_than_are_read_back_are_not_written(packed, monkeypatch):
    report, corpus, _ = measured()
    monkeypatch.setattr(report_folder, "MOST_HEADS", 3)
    with pytest.raises(VizformerError, match="at most 3"):
        report_folder.packed_report(report, corpus)


def test_the_bundled_reports_fit_into_a_folder():
    for path in asset("head_reports").iterdir():
        report = read_report(path)
        again, texts = read_report_folder(report_folder.packed_report(report, bundled_corpus(report.corpus)))
        assert again.rows()[0].keys() == report.rows()[0].keys()
        number = int(next(iter(report.kinds.values())).tenths["entropy"][0, 0, 0])
        assert texts.passages[number] == bundled_corpus(report.corpus).passages[number]
