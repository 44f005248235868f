"""What every head of a model does, measured on a corpus: the head report."""

from vizformer.analysis.corpus_heads.corpus import Corpus, Passage, bundled_corpus, read_texts
from vizformer.analysis.corpus_heads.report import HeadReport, KindReport
from vizformer.analysis.corpus_heads.running import head_report, run_key
