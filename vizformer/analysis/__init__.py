"""A trace to what a reader wants to know of it: numpy out.

What the model or the trace does not have (a kind of attention, a layer, head, row or token) is a `TraceError`.
"""

from typing import TYPE_CHECKING

from vizformer import lazy

if TYPE_CHECKING:
    from vizformer.analysis import circuits
    from vizformer.analysis.attribution.blanks import Guess, guess, guesses, hide, looks_at, mean_guess
    from vizformer.analysis.attribution.direct import logit_attribution
    from vizformer.analysis.attribution.input_gradients import InputAttribution, input_attribution
    from vizformer.analysis.attribution.lens import LogitLens, logit_lens
    from vizformer.analysis.attribution.predictions import Choice, Prediction, choices, next_tokens
    from vizformer.analysis.attribution.score_writers import (
        ScoreSplit,
        Writer,
        score_split,
        value_writers,
        writer_tokens,
    )
    from vizformer.analysis.attribution.terms import LogitAttribution, Term
    from vizformer.analysis.causes.ablation import Effects, Part, parts_of, without
    from vizformer.analysis.causes.ablation import sweep as ablation_sweep
    from vizformer.analysis.causes.edge_attribution import (
        Edge,
        EdgeScores,
        Faithfulness,
        edge_scores,
        faithfulness,
        measured_edges,
    )
    from vizformer.analysis.causes.evidence_graph import Evidence, EvidenceEdge, Removed, taken_out
    from vizformer.analysis.causes.evidence_search import answer_evidence
    from vizformer.analysis.causes.patching import Patched, attribution_patches, patch_of, patch_runs
    from vizformer.analysis.causes.prompt_pairs import PromptPair, prompt_pair
    from vizformer.analysis.causes.prompt_sets import PromptRow, PromptSet, bundled_set, bundled_sets, read_prompt_set
    from vizformer.analysis.causes.set_effects import SetEffects, over_prompts
    from vizformer.analysis.corpus_heads import Corpus, HeadReport, bundled_corpus, head_report, read_texts
    from vizformer.analysis.heads.cell_questions import (
        AnswerCell,
        CellQuestion,
        HabitQuestion,
        answer_cell,
        cell_question,
        habit_question,
    )
    from vizformer.analysis.heads.induction import (
        HeadScores,
        head_scores,
        induction_score,
        previous_token_score,
        repeated_tokens,
    )
    from vizformer.analysis.heads.layer_aggregates import Aggregate, aggregates, layer_aggregate
    from vizformer.analysis.heads.maps import (
        HeadMaps,
        Kind,
        head_maps,
        kinds,
        n_layers,
        records_of,
        site_name,
        without_keys,
    )
    from vizformer.analysis.heads.measures import HeadMeasures, sinks
    from vizformer.analysis.heads.null_space import EffectiveAttention, effective_attention
    from vizformer.analysis.heads.qk_circuit import Asymmetry, Bilinear, ScoreForms, asymmetry, bilinear, score_forms
    from vizformer.analysis.heads.questions import (
        RatioQuestion,
        ScaleQuestion,
        WhereQuestion,
        ratio_question,
        scale_question,
        where_question,
    )
    from vizformer.analysis.heads.score_scaling import ScoreScale, score_scale
    from vizformer.analysis.heads.score_terms import PairTerms, pair_terms
    from vizformer.analysis.heads.signed_roles import SignedRole, signed_role
    from vizformer.analysis.heads.small_maps import HeadOverview, head_overview
    from vizformer.analysis.heads.soft_lookup import HeadLookUp, LookUp, head_look_up, look_up
    from vizformer.analysis.heads.trace_heads import TraceHeads, TraceNumbers
    from vizformer.analysis.heads.word_alignment import (
        AlignedPair,
        Alignment,
        AlignmentScore,
        Link,
        WordOrder,
        alignment,
        alignment_score,
        linked,
        read_alignments,
        telling_row,
        word_map,
        word_order,
        word_starts,
    )
    from vizformer.analysis.side_by_side import (
        TwoRuns,
        head_divergences,
        head_pair,
        moved_weights,
        row_divergences,
        stream_cosines,
        two_answers,
        two_runs,
    )

__getattr__, __dir__, __all__ = lazy.names(__name__, __file__)
