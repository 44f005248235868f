"""What every head of a model does, measured on a corpus: the head report."""

from vizformer.analysis.head_report.corpus import Corpus, Passage, bundled_corpus, read_texts
from vizformer.analysis.head_report.report import HeadReport, KindReport
from vizformer.analysis.head_report.running import head_report, run_key

__all__ = ["Corpus", "HeadReport", "KindReport", "Passage", "bundled_corpus", "head_report", "read_texts", "run_key"]
