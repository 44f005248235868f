"""A trace to what a reader wants to know of it: numpy out.

What the model or the trace does not have (a kind of attention, a layer, head, row or token) is a `TraceError`.
"""

from typing import TYPE_CHECKING

from vizformer import lazy

if TYPE_CHECKING:
    from vizformer.analysis import circuits
    from vizformer.analysis.attribution.direct import logit_attribution
    from vizformer.analysis.attribution.input_gradients import InputAttribution, input_attribution
    from vizformer.analysis.attribution.lens import LogitLens, logit_lens
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
    from vizformer.analysis.causes.evidence_graph import Evidence, EvidenceEdge, Removed, answer_evidence, taken_out
    from vizformer.analysis.causes.patching import Patched, attribution_patches, patch_of, patch_runs
    from vizformer.analysis.causes.prompt_pairs import PromptPair, prompt_pair
    from vizformer.analysis.causes.prompt_sets import PromptRow, PromptSet, bundled_set, bundled_sets, read_prompt_set
    from vizformer.analysis.causes.set_effects import SetEffects, over_prompts
    from vizformer.analysis.corpus_heads import Corpus, HeadReport, bundled_corpus, head_report, read_texts
    from vizformer.analysis.head_outputs import EffectiveAttention, SignedRole, effective_attention, signed_role
    from vizformer.analysis.heads.induction import (
        HeadScores,
        head_scores,
        induction_score,
        previous_token_score,
        repeated_tokens,
    )
    from vizformer.analysis.heads.maps import (
        Aggregate,
        HeadMaps,
        Kind,
        aggregates,
        head_maps,
        kinds,
        layer_aggregate,
        n_layers,
        records_of,
        site_name,
        without_keys,
    )
    from vizformer.analysis.heads.measures import HeadMeasures, HeadOverview, head_overview, sinks
    from vizformer.analysis.heads.questions import (
        AnswerCell,
        CellQuestion,
        HabitQuestion,
        RatioQuestion,
        ScaleQuestion,
        WhereQuestion,
        answer_cell,
        cell_question,
        habit_question,
        ratio_question,
        scale_question,
        where_question,
    )
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
    from vizformer.analysis.one_forward.predictions import (
        Choice,
        Guess,
        Prediction,
        choices,
        guess,
        guesses,
        hide,
        looks_at,
        mean_guess,
        next_tokens,
    )
    from vizformer.analysis.scores.qk_circuit import Asymmetry, Bilinear, ScoreForms, asymmetry, bilinear, score_forms
    from vizformer.analysis.scores.score_scaling import PairTerms, ScoreScale, pair_terms, score_scale
    from vizformer.analysis.scores.score_writers import ScoreSplit, Writer, score_split, value_writers, writer_tokens
    from vizformer.analysis.scores.soft_lookup import HeadLookUp, LookUp, head_look_up, look_up
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
