"""The exercises as files: they run as they stand, and with the functions filled in they end in a Transformer."""

import ast
import json
import runpy
import sys
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

import vizformer as vf
from vizformer.cli import main
from vizformer.errors import TraceError
from vizformer.exercises.folder import NOTEBOOK, contents, module, notebook, write
from vizformer.exercises.path import TASKS

BARE = "    raise NotImplementedError"
EXERCISES = [vf.exercise(name) for name in TASKS]


def filled(text, one):
    """The text with the solution in place of the functions that are to be written."""
    written = text.replace(
        one.stub, "\n\n\n".join([*[one.stub.partition("\n\n\ndef ")[0]] * bool(one.task.helpers), one.solution])
    )
    assert BARE not in written
    return written


def run(folder, name):
    return runpy.run_path(str(folder / name), run_name="__main__")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Files as they are written; what they import of each other is forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("exercise_"):
            del sys.modules[name]


def test_files_with_the_solutions_agree_and_translate(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    write(folder)
    for one in EXERCISES:
        path = folder / f"{module(one)}.py"
        path.write_text(filled(path.read_text(encoding="utf-8"), one), encoding="utf-8")
        run(folder, path.name)
        assert capsys.readouterr().out.startswith(f"✓ {one.title}: all "), one.title
    run(folder, "own_transformer.py")
    said = capsys.readouterr().out.splitlines()
    assert said[0] == vf.load("zh-en").generate("我有一只猫。").text
    assert said[1].startswith("zh-en writes the same; the logits differ by at most")
    assert "<html" in (folder / "my_attention.html").read_text(encoding="utf-8")


def test_a_file_as_it_stands_says_that_it_is_not_written_yet(folder, capsys):
    write(folder, "zh")
    for name in ("exercise_01_softmax.py", "exercise_08_encoder_layer.py"):
        run(folder, name)
        assert "还没有写" in capsys.readouterr().out


def test_the_notebook_with_the_solutions_ends_in_a_translation():
    exercises = [vf.exercise(name, "zh") for name in TASKS]  # (the files are run in English)
    names: dict[str, object] = {"__name__": "__notebook__"}
    shown = []
    for cell in notebook(exercises)["cells"]:
        if cell["cell_type"] == "code":
            text = "".join(cell["source"])
            for one in exercises:
                text = filled(text, one) if BARE in text and one.stub in text else text
            body = ast.parse(text).body
            last = body.pop() if isinstance(body[-1], ast.Expr) else None
            exec(compile(ast.Module(body, []), "<cell>", "exec"), names)
            if last is not None:
                shown.append(eval(compile(ast.Expression(last.value), "<cell>", "eval"), names))
    *checks, translation = shown
    assert len(checks) == 12
    assert all(checks), checks
    assert translation.text == vf.load("zh-en").generate("我有一只猫。").text
    assert "写出的相同" in repr(translation)
    assert translation._repr_html_().count("<iframe") == 1


def test_her_maps_are_those_of_the_model_where_her_functions_are_right():
    four = [TASKS[name].solutions[0] for name in ("positions", "encoder_layer", "decoder_layer", "decoding")]
    found = vf.exercises.OwnTransformer(*four).translate("他喜欢喝水。", width=2)
    model = vf.load("zh-en")
    config = model.model.config
    trace = model.trace("他喜欢喝水。", target_ids=[*config.start_ids, *found.ids[:-1]])
    for kind, part in (("encoder", "self"), ("decoder", "self"), ("cross", "cross")):
        stack = "encoder" if kind == "encoder" else "decoder"
        maps = torch.stack(
            [
                torch.stack([trace[f"{stack}.{n}.{part}"].pattern(h) for h in range(config.n_heads)])
                for n in range(config.n_decoder_layers)
            ]
        )
        torch.testing.assert_close(found.maps[kind], maps, rtol=0, atol=1e-5)  # float32, three layers
        assert found.view(kind).heads.shape == maps.shape
    assert found.difference < 1e-3
    assert found.view().key_tokens == tuple(token.text for token in trace.tokens["encoder"])


def test_her_maps_are_hers_where_her_function_is_wrong():
    positions, encoder_layer, decoder_layer, search = (
        TASKS[name].solutions[0] for name in ("positions", "encoder_layer", "decoder_layer", "decoding")
    )

    def flat(x, memory, w, n_heads):
        own, cross, x = decoder_layer(x, memory, w, n_heads)
        return own, torch.full_like(cross, 1 / len(memory)), x

    def first(step, start, end, width, longest):
        return search(step, start, end, width, 1)

    found = vf.exercises.OwnTransformer(positions, encoder_layer, flat, first).translate()
    right, maps = vf.load("zh-en").generate("我有一只猫。").text, found.maps["cross"]
    assert bool((maps == 1 / maps.shape[-1]).all())
    assert right.startswith(found.text)
    assert len(found.ids) == 1
    assert f"zh-en writes: {right}" in repr(found)


def test_what_a_student_wrote_is_never_written_over(tmp_path):
    paths = write(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in paths)
    assert write(tmp_path) == paths  # unchanged: the same again
    changed = tmp_path / "exercise_05_add_norm.py"
    changed.write_text("mine", encoding="utf-8")
    (tmp_path / "README.md").unlink()
    with pytest.raises(TraceError, match=r"already contains exercise_05_add_norm\.py with other contents"):
        write(tmp_path)
    assert changed.read_text(encoding="utf-8") == "mine"
    assert not (tmp_path / "README.md").exists()  # nothing was written
    with pytest.raises(TraceError, match="cannot be written"):
        write(changed)


def test_the_command_lays_them_out_in_both_languages(tmp_path):
    for language, title in (("en", "One head"), ("zh", "一个头")):
        done = CliRunner().invoke(main, ["exercises", str(tmp_path / language), "--language", language])
        assert done.exit_code == 0, done.output
        assert "15 files" in done.output
        assert title in (tmp_path / language / "exercise_03_head.py").read_text(encoding="utf-8")
    for arguments, said in (
        (["zh", "--language", "en"], "with other contents"),
        (["fr", "--language", "fr"], "no language 'fr'"),
    ):
        refused = CliRunner().invoke(main, ["exercises", str(tmp_path / arguments[0]), *arguments[1:]])
        assert refused.exit_code == 1
        assert said in refused.output


def test_every_file_is_a_program_and_every_text_is_in_its_language():
    english, chinese = contents("en"), contents("zh")
    assert english.keys() == chinese.keys()
    for name in english:
        assert english[name] != chinese[name], name
        if name.endswith(".py"):
            ast.parse(english[name])
            assert max(map(len, english[name].splitlines())) <= 125
    for cell in json.loads(chinese[NOTEBOOK])["cells"]:
        text = "".join(cell["source"])
        assert cell["cell_type"] == "code" or any("一" <= letter <= "鿿" for letter in text), text
    listed = chinese["README.md"]
    assert all(Path(name).stem in listed for name in chinese if name != "README.md")
