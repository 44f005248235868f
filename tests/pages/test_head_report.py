"""The page What each head does: it measures in a process of its own, goes on where it was stopped, and says it in words."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from tests import recorded_models
from tests.bundled import load
from tests.components.test_mount import sent
from tests.pages.reading import array, chart, open_boxes_of
from tests.recorded_code import named
from vizformer.analysis import signed_role
from vizformer.analysis.circuits import copying_scores, ov_pairs, qk_pairs
from vizformer.analysis.corpus_heads import Corpus, bundled_corpus, head_report
from vizformer.analysis.corpus_heads.one_text import read_tokens, run
from vizformer.analysis.corpus_heads.report import WEIGHTS, path_of_bundled_report, read_report, write_report
from vizformer.analysis.corpus_heads.worker import Request
from vizformer.assets import asset, bundled_models
from vizformer.checkpoints import own_code
from vizformer.errors import VizformerError
from vizformer.jobs import queue
from vizformer.web.catalogue import model_cache
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.pages.head_report import computations, head_reports
from vizformer.web.pages.head_report.head_reports import Reports
from vizformer.web.widgets import chart as chart_widget
from vizformer.web.widgets import laboratories
from vizformer.web.words.part_names import role_said

PAGE = "pages/checkpoint/head_report.py"
TEXTS = "I have a cat.\nThe cats are here, and the cats are there.\n我有一只猫。"


@pytest.fixture
def reports(tmp_path, monkeypatch):
    made = Reports(tmp_path / "reports")
    monkeypatch.setattr(head_reports, "reports", lambda: made)
    yield made
    made.close()


@pytest.fixture(scope="module")
def stories(tmp_path_factory):
    """The finished report of the model `stories` on the first English passages, in a file."""
    path = tmp_path_factory.mktemp("stories") / "report.npz"
    corpus = bundled_corpus("en")
    report = head_report(load("stories"), replace(corpus, passages=corpus.passages[:40]))
    assert report is not None
    write_report(report, path)
    return path, report


@pytest.fixture
def measured(reports, stories, monkeypatch):
    """As if no report came with the model, and somebody had had it measured."""
    monkeypatch.setattr(head_reports, "bundled", lambda model, corpus: None)
    name = head_reports.name_of(ModelRef("bundled", "stories"), bundled_corpus("en"))
    folder = reports.root / name
    folder.mkdir(parents=True)
    (folder / "report.npz").write_bytes(stories[0].read_bytes())
    reports._jobs[name] = queue.Job(folder, 40, 0.0, ending="over")
    head_reports.report.clear()
    return stories[1]


def ended(reports):
    """Waits until everything that runs is over."""
    for job in reports._jobs.values():
        if job.process is not None:
            job.process.wait()


def clicked(app, key):
    return app.button(key=key).click().run()


def components(app):
    return [sent(app, index) for index in range(len(app.get("bidi_component")))]


def said(app):
    return " ".join([*(one.value for one in app.text), *(one.value for one in app.caption)])


@pytest.mark.sweep
def test_the_readers_own_texts_are_measured_in_a_process_of_its_own(open_app, reports):
    app = open_app(PAGE, model="cloze", dials="headreport.texts:own")
    assert "Write or paste some texts" in app.info[0].value
    app.text_area(key="head_report.texts").set_value(TEXTS).run()
    assert "Only the first 256 [tokens](#term-token) of each text are read." in said(app)
    clicked(app, "head_report.measure")
    assert app.button(key="head_report.stop")
    (job,) = reports._jobs.values()
    assert job.process.pid
    ended(reports)
    app.run()
    assert not app.exception
    assert not app.error
    assert "over all 3 texts" in said(app)
    corpus = head_reports.report(next(iter(reports._jobs))).corpus
    assert corpus == "own"


@pytest.mark.sweep
def test_a_stopped_measuring_goes_on(open_app, reports):
    texts = [passage.text for passage in bundled_corpus("zh").passages[:24]]
    app = open_app(PAGE, model="cloze", dials="headreport.texts:own")
    app.text_area(key="head_report.texts").set_value("\n".join(texts)).run()
    clicked(app, "head_report.measure")
    clicked(app, "head_report.stop")
    ended(reports)
    app.run()
    assert "It goes on from there" in app.info[0].value
    clicked(app, "head_report.again")
    ended(reports)
    app.run()
    assert not app.error
    (name,) = reports._jobs
    whole = head_report(load("cloze"), Corpus.of(texts, "own"))
    assert np.array_equal(
        head_reports.report(name).kinds["encoder"].mean["previous"], whole.kinds["encoder"].mean["previous"]
    )


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("locale", "words", "sign"),
    [("en-US", "attends most to the token before it in", "copying"), ("zh-CN", "放在前一个词元上", "复制")],
)
def test_the_sentence_and_the_table_say_what_the_library_says(open_app, measured, locale, words, sign):
    app = open_app(PAGE, locale=locale, model="stories", layer=2, head=1)
    assert not app.exception
    found = measured.kinds["decoder"]
    assert words in said(app)
    assert f"{found.most['previous'][2, 1]:.0%}" in said(app)
    assert f"{int(found.rows['previous'][2, 1]):,}" in said(app)
    table = app.dataframe[2].value
    assert len(table) == 40
    first = table.iloc[0]
    assert (first.iloc[0], first.iloc[1]) == (2, 1)
    assert first.iloc[3] == round(float(found.mean["previous"][2, 1]), 3)
    assert first.iloc[4] == round(float(found.spread["previous"][2, 1]), 3)
    assert found.sign[2, 1] == 1
    assert first.iloc[-1] == sign
    assert {"en-US": "it copies", "zh-CN": "它做复制"}[locale] in said(app)
    texts = computations.role_texts(ModelRef("bundled", "stories"), bundled_corpus("en"))
    role = signed_role(load("stories"), texts, "decoder.2.self", 1)
    assert {"en-US": role_said(role), "zh-CN": "这个头在反复制：它降低所关注词元的 logit"}[locale] in said(app)
    assert role.mean < 0  # in texts it opposes what its weights alone say
    assert f"{role.mean:+.3f}".replace("-", "−") in said(app)


@pytest.mark.parametrize(
    "measure", ["previous", "induction_repeated", "entropy", "positional", "redundancy", "beside_sinks", "copying"]
)
def test_every_measure_can_be_looked_at(open_app, measured, measure):
    app = open_app(PAGE, model="stories", dials=f"headreport.measure:{measure}", layer=3, head=3)
    assert not app.exception
    assert not app.error
    assert app.selectbox(key="setting.headreport.measure").value == measure


def test_the_head_opens_on_the_page_attention_on_its_strongest_text(open_app, measured):
    app = open_app(PAGE, model="stories", layer=2, head=1)
    clicked(app, "head_report.open")
    number = measured.kinds["decoder"].strongest["previous"][2, 1]
    text = bundled_corpus("en").passages[number].text
    assert app.text_input(key="view.text").value == text
    assert app.query_params["layer"] == "2"
    assert app.query_params["head"] == "1"


def test_a_model_that_is_not_there_is_said(open_app, reports):
    app = open_app(PAGE, model="upload/4f0c6ad2e9b10d37")
    assert not app.exception
    assert "An upload lives only in the session that made it" in app.error[0].value


HOSTILE = "</s><script>alert(1)</script>\n$x$ **b** :red[a]\n\x00\n" + "猫" * 3000


@pytest.mark.sweep
def test_any_texts_can_be_measured(open_app, reports):
    app = open_app(PAGE, model="stories", dials="headreport.texts:own")
    app.text_area(key="head_report.texts").set_value(HOSTILE).run()
    clicked(app, "head_report.measure")
    ended(reports)
    app.run()
    assert not app.exception
    assert not app.error


@pytest.mark.sweep
def test_a_model_that_does_not_open_is_said(reports, tmp_path):
    reports.submit("broken", Request(str(tmp_path / "none"), {}, "float32", "cpu", "own", ("a",)))
    ended(reports)
    assert reports.look("broken").phase == "unreadable"


@pytest.mark.sweep
def test_what_breaks_off_is_said_and_can_be_tried_again(reports, monkeypatch):
    def broken(module, folder):
        return subprocess.Popen([sys.executable, "-c", "raise SystemExit(1)"])

    request = Request("cloze", {}, "float32", "cpu", "own", ("a cat",))
    with monkeypatch.context() as changed:
        changed.setattr(queue, "start_process", broken)
        reports.submit("one", request)
        ended(reports)
        assert reports.look("one").phase == "failed"
    reports.submit("one", request)
    ended(reports)
    assert reports.look("one").phase == "over"


def test_one_after_the_other_and_not_too_many(reports):
    request = Request("cloze", {}, "float32", "cpu", "own", ("a cat",))
    for number in range(Reports.longest_queue + 1):
        reports.submit(f"report-{number}", request)
    assert reports.look("report-1").phase == "waiting"
    assert (reports.look("report-2").phase, reports.look("report-2").ahead) == ("waiting", 1)
    with pytest.raises(VizformerError, match="waiting already"):
        reports.submit("one more", request)
    reports.stop("report-1")
    assert reports.look("report-1").phase == "stopped"
    assert reports.look("report-2").ahead == 0
    assert reports.look("nobody asked for this") is None


def test_reports_of_visitors_take_turns(reports):
    request = Request("cloze", {}, "float32", "cpu", "own", ("a cat",))
    for number in range(4):
        reports.submit(f"many-{number}", request, "many tabs", "school")
    reports.submit("other", request, "other", "home")
    assert reports.look("other").ahead == 0  # before what waits of a visitor whose first one runs
    assert [reports.look(f"many-{number}").ahead for number in (1, 2, 3)] == [1, 2, 3]


def test_one_that_goes_on_is_not_taken_from_the_disk_for_its_own_sake(reports, monkeypatch):
    monkeypatch.setattr(Reports, "most_kept", 2)
    monkeypatch.setattr(queue, "start_process", lambda module, folder: subprocess.Popen([sys.executable, "-c", ""]))
    request = Request("cloze", {}, "float32", "cpu", "own", ("a",))
    for name in ("first", "second"):
        reports.submit(name, request)
        ended(reports)
        reports.look(name)
    (reports.root / "first" / "sums").mkdir()
    reports.submit("first", request)
    assert (reports.root / "first" / "sums").is_dir()
    assert reports.look("second") is not None


def test_the_oldest_are_taken_from_the_disk(reports, monkeypatch):
    monkeypatch.setattr(Reports, "most_kept", 3)
    monkeypatch.setattr(queue, "start_process", lambda module, folder: subprocess.Popen([sys.executable, "-c", ""]))
    for number in range(6):
        reports.submit(f"report-{number}", Request("cloze", {}, "float32", "cpu", "own", ("a",)))
        ended(reports)
        reports.look(f"report-{number}")
    assert len(list(reports.root.iterdir())) == 3
    assert reports.look("report-0") is None


@pytest.mark.sweep
def test_two_models_or_texts_are_two_reports():
    model, corpus = ModelRef("models", "a", stamp="1"), bundled_corpus("en")
    names = {
        head_reports.name_of(model, corpus),
        head_reports.name_of(ModelRef("models", "a", stamp="2"), corpus),
        head_reports.name_of(model.within("bfloat16"), corpus),
        head_reports.name_of(model, bundled_corpus("zh")),
    }
    assert len(names) == 4


@pytest.fixture
def boxes_open(monkeypatch):
    open_boxes_of(monkeypatch, laboratories)


@pytest.mark.sample(1)
@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_the_circuits_are_what_the_library_says(open_app, measured, boxes_open, locale):
    app = open_app(PAGE, locale=locale, model="stories", layer=2, head=1, dials="headreport.distance:1")
    assert not app.exception
    assert not app.error
    checkpoint = load("stories")
    assert app.metric[0].value == f"{copying_scores(checkpoint)[2, 1]:+.2f}"
    composing, looks, says = (box.value for box in app.dataframe[3:6])
    assert composing.iloc[0].tolist()[:3] == ["K", "L2 H1", "L3 H3"]
    for table, pairs in ((looks, qk_pairs(checkpoint, 2, 1, distance=1)), (says, ov_pairs(checkpoint, 2, 1))):
        texts = [checkpoint.tokenizer.tokens([pairs[0].row, pairs[0].column])[at].text for at in (0, 1)]
        assert table.iloc[0].tolist() == [*texts, round(pairs[0].value, 2)]


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
@pytest.mark.parametrize("stacks", ["decoder", "encoder"])
def test_circuits_of_recorded_code_are_shown_where_its_matrices_are_found(
    open_app, boxes_open, monkeypatch, stacks, locale
):
    with named(monkeypatch):
        monkeypatch.setenv(own_code.VARIABLE, f"{recorded_models.__file__}:{stacks}")
        model = ModelRef("code", f"recorded_models.{stacks}")
        checkpoint, corpus = model_cache.checkpoint(model), bundled_corpus("en")
        report = head_report(checkpoint, replace(corpus, passages=corpus.passages[:2]))
        monkeypatch.setattr(head_reports, "bundled", lambda model, corpus: report)
        app = open_app(PAGE, locale=locale, model=f"code/{model.name}", layer=1, head=2)
        assert not app.exception
        assert not app.error
        assert not [one.key for one in app.button if str(one.key).startswith("instead.")]
        if stacks == "decoder":
            score = copying_scores(checkpoint)[1, 2]
            assert app.metric[0].value == f"{score:+.2f}"
            assert report.kinds["decoder"].mean["copying"][1, 2] == pytest.approx(score)
        else:  # a norm follows the sum
            assert not app.metric
            assert np.isnan(report.kinds["encoder"].mean["copying"]).all()
            assert locale != "en-US" or any("No matrices were found in layer 0" in one.value for one in app.info)


@pytest.mark.sweep
def test_of_a_model_without_a_head_no_copying_is_claimed(open_app, measured, boxes_open, monkeypatch):
    monkeypatch.setattr(model_cache, "predicts", lambda model: False)
    app = open_app(PAGE, model="stories")
    assert not app.exception
    assert "no output layer that predicts tokens" in said(app)
    assert not app.metric


@pytest.mark.sweep
def test_circuits_are_of_the_stack_that_predicts(open_app, reports, boxes_open):
    app = open_app(PAGE, model="zh-en", dials="headreport.texts:own", site="encoder")
    app.text_area(key="head_report.texts").set_value(
        "我有一只猫。\tI have a cat.\n他们在学校。\tThey are at school."
    ).run()
    clicked(app, "head_report.measure")
    ended(reports)
    app.run()
    assert not app.exception
    assert "of the stack that predicts" in said(app)
    app.segmented_control(key="view.kind").set_value("decoder").run()
    assert not app.exception
    assert "of the stack that predicts" not in said(app)
    app.segmented_control(key="view.kind").set_value("cross").run()
    assert not app.exception
    assert not app.error


def test_the_strongest_head_of_the_measure_is_shown_until_one_is_chosen(open_app, measured):
    values = measured.kinds["decoder"].mean
    app = open_app(PAGE, model="stories")
    best = np.unravel_index(values["previous"].argmax(), values["previous"].shape)
    assert app.subheader[0].value == f"Layer {best[0]}, head {best[1]}"
    app.selectbox(key="setting.headreport.measure").set_value("entropy").run()
    best = np.unravel_index(values["entropy"].argmax(), values["entropy"].shape)
    assert app.subheader[0].value == f"Layer {best[0]}, head {best[1]}"
    value = f"{values['entropy'][best]:.2f}"
    assert f"Shown: layer {best[0]}, head {best[1]}. Of all heads its measure “Entropy” is largest ({value})" in said(
        app
    )
    app = open_app(PAGE, model="stories", layer=3)
    assert app.subheader[0].value == "Layer 3, head 0"
    assert "Shown: layer" not in said(app)
    for link in ({"dials": "headreport.first:1"}, {"layer": 0, "head": 0}):
        assert open_app(PAGE, model="stories", **link).subheader[0].value == "Layer 0, head 0"


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("locale", "hover"),
    [("en-US", "layer 2, head 1. Distance (tokens): "), ("zh-CN", "第 2 层，第 1 个头。距离 (词元)：")],
)
def test_all_heads_are_points_between_the_chosen_axes(open_app, measured, locale, hover):
    found = measured.kinds["decoder"].mean
    dials = "headreport.measure:first~headreport.across:distance~headreport.colour:logit_effect"
    app = open_app(PAGE, locale=locale, model="stories", layer=2, head=1, dials=dials)
    assert not app.exception
    points, ring = chart(app, 0)["data"]
    for shown, measure in (
        (points["x"], "distance"),
        (points["y"], "first"),
        (points["marker"]["color"], "logit_effect"),
    ):
        assert np.array_equal(array(shown), found[measure].astype(np.float32).ravel())
    assert array(ring["x"]).tolist() == [np.float32(found["distance"][2, 1])]
    assert points["customdata"][17].startswith(hover)
    assert points["text"][17] == "2.1"


def test_a_second_click_on_a_point_is_meant_as_well(monkeypatch):
    state, chosen = {}, []
    monkeypatch.setattr(chart_widget.st, "session_state", state)
    for points in ([{"curve_number": 0, "point_index": 21}], [], [{"curve_number": 1, "point_index": 0}]):
        state["key"] = {"selection": {"points": points}}
        chart_widget._clicked("key", chosen.append)
    assert chosen == [21, 21, 21]


def test_a_text_from_each_tenth_is_shown(open_app, measured):
    found, corpus = measured.kinds["decoder"], bundled_corpus("en")
    for tenth in (1, 10):
        app = open_app(PAGE, model="stories", layer=2, head=1, dials=f"headreport.text:{tenth}")
        number = int(found.tenths["previous"][2, 1][tenth - 1])
        assert corpus.passages[number].text in said(app)
        value = f"{tenth} · {found.tenth_values['previous'][2, 1][tenth - 1]:.1%}"
        assert value in app.segmented_control(key="setting.headreport.text").proto.options[11 - tenth].content
    on = computations.on_passage(ModelRef("bundled", "stories"), corpus.passages[number], "decoder", 2, 1, "previous")
    shown = array(chart(app, 1)["data"][0]["z"])
    assert np.isfinite(shown).sum() == (on.reasons[:64, :64] == 0).sum()
    assert np.nan_to_num(shown) == pytest.approx(on.pattern[:64, :64])


def test_largest_weights_and_tokens_are_those_of_the_report(open_app, measured):
    found = measured.kinds["decoder"]
    app = open_app(PAGE, model="stories", layer=2, head=1)
    shares = found.largest[2, 1] / found.largest[2, 1].sum()
    assert array(chart(app, 2)["data"][0]["y"]) == pytest.approx(shares, abs=1e-6)
    keys, queries = app.dataframe[0].value, app.dataframe[1].value
    assert keys.iloc[:, 0].tolist() == found.tokens["key"][2, 1].tolist()
    assert keys.iloc[0, 2] == f"{found.tokens['key_count'][2, 1][0] / found.picks[2, 1]:.1%}"
    assert queries.iloc[:, 1].tolist() == found.tokens["query_count"][2, 1].tolist()
    share = found.tokens["query_count"][2, 1][0] / found.tokens["query_rows"][2, 1][0]
    assert queries.iloc[0, 2] == f"{share:.1%}"


def test_vectors_of_the_head_lie_where_their_two_main_directions_say(open_app, measured, boxes_open):
    app = open_app(PAGE, model="stories", layer=2, head=1)
    assert not app.exception
    passage = bundled_corpus("en").passages[int(measured.kinds["decoder"].strongest["previous"][2, 1])]
    checkpoint = load("stories")
    record = run(checkpoint, read_tokens(checkpoint, passage))["decoder.2.self"]
    parts = [record.q[1], record.k[record.kv_head(1)], record.v[record.kv_head(1)], record.z(1)]
    shown = [chart(app, index) for index in range(len(app.get("plotly_chart")))]
    shown = [
        one for one in shown if one["layout"].get("title", {}).get("text") in ("Queries", "Keys", "Values", "Outputs")
    ]
    for one, rows in zip(shown, parts, strict=True):
        centred = rows[:64].double().numpy() - rows[:64].double().numpy().mean(0)
        __, s, vt = np.linalg.svd(centred, full_matrices=False)
        for axis, name in enumerate("xy"):
            assert np.abs(array(one["data"][0][name])) == pytest.approx(np.abs(centred @ vt[axis]), abs=1e-4)
            percent = f"({s[axis] ** 2 / (s**2).sum():.0%} of the variance)"
            assert percent in one["layout"][f"{name}axis"]["title"]["text"]
        assert one["data"][0]["customdata"][1].startswith("1 · ")


@pytest.mark.parametrize("name", bundled_models())
@pytest.mark.sample(1)
def test_the_report_of_a_bundled_model_is_there_at_once_and_belongs_to_it(open_app, reports, name):
    app = open_app(PAGE, model=name)
    assert not app.exception
    assert not app.error
    assert not reports._jobs
    checkpoint = load(name)
    corpus = bundled_corpus("zh" if checkpoint.model.config.architecture == "encoder-decoder" else "en")
    report = read_report(path_of_bundled_report(asset("models", name), corpus))
    assert (report.model, report.corpus, report.given) == (name, corpus.name, len(corpus.passages))
    found = next(iter(report.kinds.values()))
    assert app.subheader[0].value.startswith("Layer ")
    best = np.unravel_index(found.mean["previous"].argmax(), found.shape)

    def value(number: int) -> float:
        one = head_report(checkpoint, replace(corpus, passages=(corpus.passages[number],)))
        return float(one.kinds[found.kind].mean["previous"][best])

    assert value(int(found.strongest["previous"][best])) >= max(value(0), value(1)) - 1e-5


def test_other_weights_or_texts_have_no_report_that_came_with_vizformer(tmp_path):
    corpus = bundled_corpus("en")
    assert path_of_bundled_report(asset("models", "stories"), corpus).is_file()
    assert not path_of_bundled_report(asset("models", "stories"), bundled_corpus("zh")).exists()
    (tmp_path / WEIGHTS).write_bytes((asset("models", "stories") / WEIGHTS).read_bytes()[:-1] + b"x")
    assert not path_of_bundled_report(tmp_path, corpus).exists()
    model = ModelRef("bundled", "stories")
    assert head_reports.bundled(model, corpus) is not None
    assert head_reports.bundled(replace(model, dtype="float16"), corpus) is None


def test_stopping_ends_the_work_only_where_nobody_else_watches(reports):
    request = Request("cloze", {}, "float32", "cpu", "own", ("a cat",) * 50)
    reports.submit("one", request)
    reports.look("one", "first")
    reports.look("one", "second")
    reports.stop("one", "first")
    (job,) = reports._jobs.values()
    assert not job.told_to_stop
    assert reports.look("one", None).phase in ("running", "over")
    reports.stop("one", "second")
    assert job.told_to_stop or job.ending == "over"


def test_whoever_went_away_without_a_word_does_not_keep_it_going(reports, monkeypatch):
    monkeypatch.setattr(queue, "STILL_WATCHED", 0.0)
    reports.submit("one", Request("cloze", {}, "float32", "cpu", "own", ("a cat",) * 50))
    reports.look("one", "gone")
    reports.look("one", "here")
    reports.stop("one", "here")
    (job,) = reports._jobs.values()
    assert job.told_to_stop or job.ending == "over"


def test_who_only_wants_to_know_keeps_nothing_going(reports):
    reports.submit("one", Request("cloze", {}, "float32", "cpu", "own", ("a cat",)))
    (job,) = reports._jobs.values()
    job.asked = before = -1000.0
    reports.look("one", None)
    assert job.asked == before
    assert not job.watchers
    reports.look("one", "somebody")
    assert job.asked > before


@pytest.mark.sweep
def test_a_reader_who_stops_what_others_watch_is_told_so_and_can_come_back(open_app, reports):
    app = open_app(PAGE, model="cloze", dials="headreport.texts:zh")
    clicked(app, "head_report.measure")
    (name,) = reports._jobs
    reports.look(name, "another reader")
    clicked(app, "head_report.stop")
    assert not reports._jobs[name].told_to_stop
    if not reports._jobs[name].ending:  # (it may be over by now)
        assert "Others wait for the same report" in app.info[0].value
        clicked(app, "head_report.watch")
        assert not any("Others wait" in one.value for one in app.info)
    ended(reports)
