"""Bare weights on the pages: asked about, opened under the answers, and the link carries them."""

import html

import pytest
import torch

from tests import conventions, handmade_models, strangers, tiny
from tests.checkpoints.test_state_dict import nano_gpt, saved
from tests.refs import ref, stamped, subject
from vizformer.checkpoints import load
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
                "What the weights do not say",
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
        "These weights fit several models: what they do not say is asked on the page Model report."
    ]


def test_one_press_asks_everything_where_the_code_was_changed(open_app):
    app = open_app(REPORT, model=ANSWERED)
    app.button(key=f"assume.{ANSWERED}.known_code").click().run()
    changed = f"{NAME};known_code=False"
    assert link(app) == changed
    known = dict(conventions.FORKS["norms after the sum"].strict, score_scale="nothing", residual="sequential")
    known |= dict(qkv_rows="q_k_v", head_rows="head_by_head", first_position=0, norm_eps=1e-5, logit_scale="nothing")
    for name, answer in (known | dict(qk_norm=False, softmax="over_keys")).items():
        if name != "known_code":
            app.selectbox(key=f"assume.{changed}.{name}").set_value(answer)
    next(button for button in app.button if button.form_id == f"assume.{changed}").click().run()
    assert not app.exception
    assert not app.error
    found = model_cache.report(stamped(link(app)))
    assert (found.config.norm_order, found.config.attention_scale, found.family) == ("post", 1.0, "hand-written")
    assert found.assumed["known_code"] is False
    app.button(key=f"assume.{link(app)}.known_code").click().run()
    assert link(app) == NAME


def test_the_link_opens_it_everywhere(open_app, shelf):
    app = open_app(ATTENTION, model=ANSWERED, text="3 14 0")
    assert not app.exception
    assert not app.error
    box = app.selectbox(key="view.model")
    assert box.value == ref(ANSWERED)
    assert box.options.count("nano.pt") == 1
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
        ("en-US", "continuous", ["This model does not open", "the model reads continuous features"]),
        ("zh-CN", "continuous", ["这个模型打不开", "模型读取的是连续特征"]),
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


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("locale", "words"),
    [
        ("en-US", ['query "blocks.0.sa.heads.0.query"', "√ of a head's width", "written by hand, read by role"]),
        ("zh-CN", ['查询 "blocks.0.sa.heads.0.query"', "每个头宽度的平方根", "自己写的模型，按作用读出"]),
    ],
)
def test_a_hand_written_model_shows_how_it_was_read_and_opens(open_app, shelf, locale, words):
    characters = "\n !,.abcdefghijklmnopq"
    content = {"model": tiny.randomise(strangers.LectureGPT()).state_dict(), "chars": characters}
    saved(content, shelf / "lecture.pt")
    name = "models/lecture.pt"
    app = open_app(REPORT, locale=locale, model=name)
    assert not app.exception
    assert not app.error
    assert words[0] in said(app)
    assert app.selectbox(key=f"assume.{name}.score_scale").options[0].startswith(words[1])
    answered = f"{name};norm_order=pre;activation=relu;scaled_embedding=False"
    app = open_app(REPORT, locale=locale, model=answered)
    assert not app.exception
    assert not app.error
    assert words[2] in said(app)
    app = open_app(ATTENTION, locale=locale, model=answered, text="a cab")
    assert not app.exception
    assert not app.error


@pytest.mark.parametrize(
    ("locale", "scale", "residual"),
    [
        ("en-US", "√ of a head's width (usual)", "yes, one sublayer after the other (usual)"),
        ("zh-CN", "每个头宽度的平方根（通常）", "是，子层一个接一个（通常）"),
    ],
)
def test_what_most_models_do_is_marked_and_not_taken(open_app, shelf, locale, scale, residual):
    torch.save(conventions.made("no residual").state_dict(), shelf / "bare.pt")
    app = open_app(REPORT, locale=locale, model="models/bare.pt")
    assert not app.exception
    for field, first in (("score_scale", scale), ("residual", residual), ("norm_eps", "1e-12")):
        box = app.selectbox(key=f"assume.models/bare.pt.{field}")
        assert (box.value, box.options[0]) == (None, first)


def test_the_usual_answer_goes_into_the_link_where_it_was_chosen(open_app, shelf):
    torch.save(conventions.made("no residual").state_dict(), shelf / "bare.pt")
    app = open_app(REPORT, model="models/bare.pt")
    answers = {**conventions.KINDS["no residual"].answers, "score_scale": "root_of_d_head", "norm_eps": 1e-5}
    answers |= {"head_rows": "head_by_head", "first_position": 0, "qk_norm": False, "softmax": "over_keys"}
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
    assert "score_scale=root_of_d_head" in link(app)
    assert not model_cache.report(stamped(link(app))).open_questions
    app = open_app(ATTENTION, model=link(app), text="3 14 0")
    assert not app.exception
    assert not app.error


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("locale", "words"),
    [
        ("en-US", ["No attention is recognised", "mapped by hand: the roles of 17", "written by hand, mapped by hand"]),
        ("zh-CN", ["没有认出注意力", "手工指定：打开模型时给出了 17", "自己写的模型，手工指定作用"]),
    ],
)
def test_tensors_without_words_are_mapped_by_hand(open_app, shelf, locale, words):
    """Chosen in boxes, which offer what fits; then the link opens it anywhere, and a file says the same."""
    weights = tiny.randomise(handmade_models.MODELS["fused"].make()).state_dict()
    odd = {k.replace("qkv", "aa").replace("attn.", "zz."): v for k, v in weights.items()}
    saved({**odd, "extra.weight": torch.ones(3, 5)}, shelf / "odd.pt")
    name = "models/odd.pt"
    app = open_app(REPORT, locale=locale, model=name)
    assert not app.exception
    assert words[0] in said(app)

    def box(role):
        return app.selectbox(key=f"by_hand.{name}.False.16.{role}")

    layer = "layers.#."
    assert box("embedding.weight").value.tensor == "tok_emb.weight"
    assert [o.partition(" ")[0] for o in box(f"{layer}feedforward.W_out.weight").options[1:]] == [
        "blocks.#.zz.aa.weight",
        "blocks.#.zz.proj.weight",
        "blocks.#.mlp.fc1.weight",
        "blocks.#.mlp.fc2.weight",
    ]
    chosen = {
        "final_norm.weight": "ln_f.weight",
        f"{layer}self_attention.qkv.weight": "blocks.#.zz.aa.weight",
        f"{layer}self_attention.W_O.weight": "blocks.#.zz.proj.weight",
        f"{layer}self_norm.weight": "blocks.#.norm1.weight",
        f"{layer}feedforward_norm.weight": "blocks.#.norm2.weight",
        f"{layer}feedforward.W_in.weight": "blocks.#.mlp.fc1.weight",
        f"{layer}feedforward.W_out.weight": "blocks.#.mlp.fc2.weight",
    }
    for role, tensor in chosen.items():
        options = box(role).options
        box(role).select_index(next(n for n, o in enumerate(options) if o.startswith(tensor)))
    app.multiselect(key=f"by_hand.{name}.left_out").select("extra.weight")
    next(b for b in app.button if b.form_id == f"by_hand.{name}").click().run()
    assert not app.exception
    assert ";mapping=" in link(app)
    answers = "n_heads=4;norm_order=pre;activation=gelu;causal=True;scaled_embedding=False;qkv_rows=q_k_v"
    app = open_app(REPORT, locale=locale, model=link(app).replace(";mapping", f";{answers};mapping"))
    assert not app.exception
    assert all(word in said(app) for word in words[1:])
    (file,) = [e for e in app.get("download_button") if "TOML" in e.proto.label]
    opened = ref(link(app))
    given = {**opened.given, "n_heads": 4, "causal": True, "scaled_embedding": False}
    ids = torch.tensor([[1, 2, 3]])
    model = handmade_models.MODELS["fused"].make().eval()
    model.load_state_dict(weights)
    with torch.no_grad():
        tiny.assert_close(load(shelf / "odd.pt", **given).trace(ids=[1, 2, 3]).logits, model(ids)[0])
    assert file is not None
