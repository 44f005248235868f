"""What analyses have found as tables."""

import numpy as np

from vizformer import analysis, load
from vizformer.analysis.causes.ablation import TokenEffects, token_sweep
from vizformer.analysis.causes.edge_attribution import EdgeScores
from vizformer.analysis.causes.prompt_sets import PromptRow
from vizformer.analysis.causes.set_effects import SetEffects
from vizformer.analysis.corpus_heads.report import read_report
from vizformer.analysis.frames import frame
from vizformer.assets import asset


def test_a_column_of_heads_holds_whole_numbers_and_gaps() -> None:
    found = frame([{"head": 1, "value": 0.5}, {"head": None, "value": 1.5}])
    assert found["head"].dtype == "Int64"
    assert found["head"].isna().tolist() == [False, True]


def test_a_table_without_a_row_has_its_columns() -> None:
    empty = frame([], ("place", "head"))
    assert list(empty) == ["place", "head"]
    assert empty["head"].dtype == "Int64"
    effects = SetEffects("zero", (), np.zeros((2, 0)), (PromptRow("a"), PromptRow("b")), (0, 1), np.ones(2), ())
    assert list(effects.to_frame()) == ["place", "head", "mean", "low", "high", "against", "rows", "distinct"]
    scores = EdgeScores(("in",), ("out",), np.zeros((1, 1), bool), np.zeros((2, 1, 1)), 1, 5)
    assert list(scores.to_frame()) == ["writer", "reader", "score", "spread"]


def test_patches_and_paths_are_tables_of_their_cells() -> None:
    checkpoint = load("induction-by-hand")
    pair = analysis.prompt_pair(checkpoint, "a b c d a", "a c b d a")
    streams = analysis.patch_runs(checkpoint, pair, "stream", "decoder")
    row = streams.to_frame().iloc[-1]
    at = streams.names.index(row["place"]), int(row["position"])
    assert row["recovered"] == streams.recovered[at]
    assert row["estimate"] == streams.estimate[at]
    assert len(streams.to_frame()) == streams.recovered.size
    by_position = analysis.patch_runs(checkpoint, pair, "heads_by_position", "decoder", layers=[1]).to_frame()
    assert list(by_position) == ["place", "head", "position", "recovered", "estimate"]
    assert tuple(by_position.iloc[0][["place", "head", "position"]]) == ("decoder.1.self", 2, pair.row)
    heads = analysis.patch_runs(checkpoint, pair, "heads", "decoder").to_frame()
    assert list(heads) == ["place", "head", "recovered", "estimate"]


def test_tokens_are_a_table_the_one_that_matters_most_first() -> None:
    checkpoint = load("cloze")
    trace = checkpoint.trace("The girl lost [MASK] hat.")
    row = next(at for at, one in enumerate(trace.tokens["encoder"]) if one.id == checkpoint.model.config.mask_id)
    answer = int(trace.logits[row].argmax())
    tokens = token_sweep(checkpoint, trace, "encoder", row, answer, "mask")
    table = tokens.to_frame()
    assert list(table) == ["stack", "position", "token", "divergence", "logit", "probability", "best"]
    assert table.divergence.is_monotonic_decreasing
    assert sorted(table.position) == list(range(len(trace.tokens["encoder"])))
    for _, one in table.iterrows():
        effect = tokens[one.position]
        assert one.token == trace.tokens["encoder"][one.position].text == effect.token.text
        assert (one.divergence, one.logit, one.best) == (effect.divergence, effect.logit, effect.best.text)
    assert table.token[0] == "girl"
    assert list(TokenEffects().to_frame()) == list(table)


def test_a_report_is_a_table_of_heads() -> None:
    report = read_report(next(asset("head_reports").iterdir()))
    assert report.to_frame()["layer"].tolist() == [row["layer"] for row in report.rows()]
