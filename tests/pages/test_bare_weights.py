"""Bare weights on the pages: asked about, opened under the answers, and the link carries them."""

import html

import pytest
import torch

from tests import conventions, strangers, tiny
from tests.checkpoints.test_state_dict import nano_gpt, saved
from tests.refs import ref, stamped, subject
from vizformer.web.catalogue import model_cache, server_folder, sources

ATTENTION, REPORT = "pages/explore/attention.py", "pages/checkpoint/report.py"
NAME, ANSWERED = "models/nano.pt", "models/nano.pt;n_heads=4;activation=gelu"


@pytest.fixture(autouse=True)
def shelf(tmp_path, monkeypatch):
    saved(nano_gpt(), tmp_path / "nano.pt")
    (tmp_path / "said").mkdir()
    saved({"model": nano_gpt(), "model_args": {"n_head": 4}}, tmp_path / "said" / "ckpt.pt")
    monkeypatch.setenv(server_folder.VARIABLE, str(tmp_path))
    return tmp_path


def said(app) -> str:
    shown = (*app.text, *app.caption, *app.markdown, *app.error, *app.subheader, *app.get("html"))
    return html.unescape("\n".join(str(getattr(e, "value", None) or e.proto.body) for e in shown))


def link(app) -> str:
    model = app.query_params["model"]
    return model if isinstance(model, str) else model[0]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("locale", "words"),
    [
        (
            "en-US",
            [
                "Questions about the weights",
                "How many attention heads has a layer?",
                "Some questions are still",
                "consistent under these assumptions",
                "bare weights",
            ],
        ),
        ("zh-CN", ["权重没有说明", "每层有几个注意力头？", "还有问题没有回答", "在这些假定下一致", "裸权重"]),
    ],
)
def test_the_form(open_app, locale, words):
    app = open_app(REPORT, locale=locale, model=NAME)
    assert not app.exception
    assert not app.error
    assert words[0] in said(app)
    heads = app.selectbox(key=f"assume.{NAME}.n_heads")
    assert heads.label == words[1]
    assert heads.value is None
    assert app.selectbox(key=f"assume.{NAME}.norm_eps").value == 1e-5
    app.button[-1].click().run()
    assert words[2] in app.warning[0].value
    app.selectbox(key=f"assume.{NAME}.n_heads").set_value(4)
    app.selectbox(key=f"assume.{NAME}.activation").set_value("gelu")
    app.button[-1].click().run()
    assert not app.exception
    assert not app.error
    assert link(app) == ANSWERED
    assert app.metric[0].value == f"{model_cache.report(stamped(ANSWERED)).n_parameters:,}"
    assert words[3] in said(app)
    assert words[4] in said(app)


def test_another_page_sends_to_the_questions_and_says_nothing_for_programs(open_app):
    app = open_app(ATTENTION, model=NAME)
    assert not app.exception
    assert [error.value for error in app.error] == [
        "These weights fit several models: answer the open questions on the page Model report."
    ]


def test_the_link_opens_it_everywhere(open_app, shelf):
    app = open_app(ATTENTION, model=ANSWERED, text="3 14 0")
    assert not app.exception
    assert not app.error
    box = app.selectbox(key="view.model")
    assert box.value == ref(ANSWERED)
    assert [option.partition(":")[0] for option in box.options].count("nano.pt") == 1
    assert "What comes next?" in said(app)
    assert str(shelf) not in said(app)
    traced = subject(ANSWERED, "3 14 0").trace
    assert torch.equal(traced.logits, model_cache.checkpoint(stamped(ANSWERED)).trace(ids=[3, 14, 0]).logits)
    box.set_value(ref("zh-en")).run()  # and it is still open under them on the way back
    app.selectbox(key="view.model").set_value(ref(ANSWERED)).run()
    assert not app.error


def test_a_text_that_is_no_numbers_is_explained(open_app):
    app = open_app(ATTENTION, model=ANSWERED, text="The cat")
    assert not app.exception
    assert "came without a tokenizer: type token ids from 0 to 22" in app.error[0].value.replace("\\", "")


def test_what_the_file_says_is_filled_in(open_app):
    app = open_app(REPORT, model="models/said")
    assert app.selectbox(key="assume.models/said.n_heads").value == 4
    assert app.selectbox(key="assume.models/said.activation").value is None


@pytest.mark.sample(1)
@pytest.mark.parametrize("answers", [";n_heads=3;activation=gelu", ";colour=red", ";n_heads=4"])
def test_answers_in_a_link_that_are_none(open_app, answers):
    app = open_app(REPORT, model=NAME + answers)
    assert not app.exception
    if answers != ";n_heads=4":
        assert "cannot be opened like this" in app.error[0].value
        next(button for button in app.button if button.label == "Without these assumptions").click().run()
    assert app.selectbox(key=f"assume.{link(app)}.activation").value is None


def test_names_with_assumptions():
    assert ref(ANSWERED).base == ref(NAME).base == ref(NAME)
    assert sources.title(ref(ANSWERED)) == "nano.pt"
    assert dict(ref(ANSWERED).answers) == dict(stamped(ANSWERED).answers) == dict(n_heads="4", activation="gelu")
    assert str(ref(ANSWERED).under(dict(n_heads=2, norm_eps=1e-6))) == f"{NAME};n_heads=2;norm_eps=1e-06"
    assert stamped(NAME).base == ref(NAME)
    for odd in (f"{NAME};", f"{NAME};a", f"{NAME};a=", f"{NAME};a=b c", f"{NAME};a=<b>", f"{NAME};A=1"):
        assert ref(odd).source == "bundled"
    assert tuple(map(str, server_folder.listed())) == (NAME, "models/said")


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("locale", "kind", "words"),
    [
        ("en-US", "continuous", ["This model does not open", "belongs to no part of the model"]),
        ("zh-CN", "continuous", ["这个模型打不开", "不属于"]),
    ],
)
def test_what_no_answer_opens_has_no_form(open_app, shelf, locale, kind, words):
    saved(tiny.randomise(strangers.KINDS[kind]()).state_dict(), shelf / "mine.pt")
    app = open_app(REPORT, locale=locale, model="models/mine.pt")
    assert not app.exception
    assert words[0] in said(app)
    assert words[1] in said(app)
    assert not any((box.key or "").startswith("assume.") for box in app.selectbox)


@pytest.mark.sample(1)
@pytest.mark.parametrize(("locale", "words"), [("en-US", "comes after the last layer"), ("zh-CN", "位于最后一层之后")])
def test_an_encoder_of_lightning_opens_without_its_head(open_app, shelf, locale, words):
    weights = tiny.randomise(strangers.DeepHead()).state_dict()
    saved(strangers.lightning(weights), shelf / "last.ckpt")
    app = open_app(REPORT, locale=locale, model="models/last.ckpt")
    assert app.selectbox(key="assume.models/last.ckpt.n_heads").value == strangers.H  # hyper_parameters say it
    answers = ";norm_order=pre;activation=gelu;causal=False;scaled_embedding=False"
    app = open_app(REPORT, locale=locale, model=f"models/last.ckpt{answers}")
    assert not app.exception
    assert not app.error
    assert words in said(app)
    app = open_app(ATTENTION, locale=locale, model=f"models/last.ckpt{answers}", text="3 14 0")
    assert not app.exception
    assert not app.error


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_weights_beside_a_config_of_unknown_type(open_app, shelf, locale):
    (shelf / "said" / "config.json").write_text('{"model_type": "my-gpt", "activation": "gelu"}')
    app = open_app(REPORT, locale=locale, model="models/said")
    assert not app.exception
    assert not app.error
    assert 'model_type="my-gpt"' in said(app).replace("\\", "")


def test_problems_under_answers_say_nothing_of_a_config(open_app, shelf):
    weights = nano_gpt()
    weights["transformer.ln_f.weight"][0] = torch.nan
    saved(weights, shelf / "nan.pt")
    app = open_app(REPORT, model="models/nan.pt;n_heads=4;activation=gelu")
    assert "This model does not open" in said(app)
    assert "holds NaN or infinite numbers" in said(app)
    assert "every tensor has its place in nanoGPT / minGPT" in said(app).replace("\\", "")
    assert "config.json belong to different models" not in said(app)


def test_the_suffixes_are_those_that_the_loader_reads():
    from vizformer.checkpoints.files import containers

    assert containers.SUFFIXES == server_folder.WEIGHTS


@pytest.mark.parametrize(
    ("locale", "over", "logits"),
    [
        ("en-US", "over the tokens of a text (usual)", "nothing (usual)"),
        ("zh-CN", "在一个文本的词元之间（通常）", "无（通常）"),
    ],
)
def test_what_most_models_do_is_marked_and_not_taken(open_app, shelf, locale, over, logits):
    torch.save(conventions.made("PyTorch's, over the batch").state_dict(), shelf / "bare.pt")
    app = open_app(REPORT, locale=locale, model="models/bare.pt")
    assert not app.exception
    for field, first in (("attention_over", over), ("logit_scale", logits)):
        box = app.selectbox(key=f"assume.models/bare.pt.{field}")
        assert (box.value, box.options[0]) == (None, first)


def test_the_usual_answer_goes_into_the_link_where_it_was_chosen(open_app, shelf):
    torch.save(conventions.made("PyTorch's, over the batch").state_dict(), shelf / "bare.pt")
    app = open_app(REPORT, model="models/bare.pt")
    answers = conventions.KINDS["PyTorch's, over the batch"].answers | {"scaled_rows": "tokens", "norm_eps": 1e-5}
    answers |= {"attention_over": "tokens"}
    for field, value in answers.items():
        app.selectbox(key=f"assume.models/bare.pt.{field}").set_value(value)

    def send():
        next(button for button in app.button if button.form_id == "assume.models/bare.pt").click().run()

    send()
    assert "Some questions" in app.warning[0].value
    app.selectbox(key="assume.models/bare.pt.logit_scale").set_value("nothing")
    send()
    assert not app.exception
    assert not app.error
    assert "attention_over=tokens" in link(app)
    assert [one.name for one in model_cache.report(stamped(link(app))).open_questions] == ["norm_eps"]
    app = open_app(ATTENTION, model=link(app), text="3 14 0")
    assert not app.exception
    assert not app.error


@pytest.mark.parametrize(
    ("locale", "words"),
    [
        (
            "en-US",
            ["contains only weights", "save_pretrained", "vf.load(path, config=..., mapping"],
        ),
        ("zh-CN", ["只有权重，而权重文件不说明", "save_pretrained", "vf.load(path, config=..., mapping"]),
    ],
)
def test_weights_that_no_layout_knows_are_told_how_to_come(open_app, shelf, locale, words):
    saved(tiny.randomise(strangers.StudentTranslator()).state_dict(), shelf / "mine.pt")
    app = open_app(REPORT, locale=locale, model="models/mine.pt")
    assert not app.exception
    plain = said(app).replace("\\", "")
    assert all(word in plain for word in words)
    assert not any((box.key or "").startswith("assume.") for box in app.selectbox)


@pytest.mark.parametrize(
    ("locale", "words"), [("en-US", "which tensor of nano.pt plays which role"), ("zh-CN", "nano.pt 的哪个张量")]
)
def test_a_link_that_mapped_tensors_says_so_and_leads_on(open_app, locale, words):
    mapped = f"{ANSWERED};mapping=q1YqyiwuyczPU7Iy;dtype=float16"
    assert str(ref(mapped)) == f"{ANSWERED};mapping=gone;dtype=float16"
    for page in (ATTENTION, REPORT):
        app = open_app(page, locale=locale, model=mapped)
        assert not app.exception
        assert words in app.error[0].value.replace("\\", "")
    app.button[-1].click().run()
    assert link(app) == f"{NAME};dtype=float16"
    assert app.selectbox(key=f"assume.{link(app)}.n_heads").value is None
