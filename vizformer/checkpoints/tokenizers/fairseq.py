"""SentencePiece files whose ids were moved: fairseq put marks of its own in front and the mask behind.

XLM-RoBERTa: <s>, <pad>, </s>, <unk> take the first ids, the file's own first three pieces (<unk>, <s>, </s>) none.
CamemBERT: <s>NOTUSED, <pad>, </s>NOTUSED, <unk>, <unk>NOTUSED come first, and of the file's pieces only <unk> goes.

Source: the files published with the models, and the order that `transformers` gives them (convert_slow_tokenizer.py).
"""

from dataclasses import replace

from tokenizers import AddedToken, processors
from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.checkpoints.tokenizers import sentencepiece_files as spm
from vizformer.checkpoints.tokenizers.refusals import guarded, raise_refusal
from vizformer.checkpoints.tokenizers.special_tokens import add_listed

XLM_ROBERTA = (("<s>", "<pad>", "</s>", "<unk>"), 3)  # what comes first, and how many of the file's pieces go
CAMEMBERT = (("<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED"), 1)
MASK = "<mask>"
USUAL = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "cls_token": "<s>",
    "sep_token": "</s>",
    "pad_token": "<pad>",
    "unk_token": "<unk>",
    "mask_token": MASK,
}


def moved(folder: Folder, name: str, order: tuple[tuple[str, ...], int]) -> Backend:
    """The tokenizer: ids as the model has them, <s> before a text and </s> behind it."""
    said = spm.read(folder, name)
    first, gone = order
    if said.kind != "unigram":
        raise_refusal(name, f"a vocabulary of the kind {said.kind}; supported here is unigram")
    if [piece.text for piece in said.pieces[:3]] != ["<unk>", "<s>", "</s>"]:
        raise_refusal(name, "it does not begin with <unk>, <s>, </s>")
    front = [spm.Piece(text, 0.0, spm.UNKNOWN if text == "<unk>" else spm.CONTROL) for text in first]
    rest = said.pieces[gone:]
    if taken := {*first, MASK} & {piece.text for piece in rest}:
        raise_refusal(name, f"it has {min(taken)} among its pieces")
    pieces = [*front, *rest, spm.Piece(MASK, 0.0, spm.UNUSED)]  # (no text gives it but the mark itself)
    backend = guarded(name, lambda: spm.build(replace(said, pieces=pieces)))
    backend.add_special_tokens([AddedToken(MASK, lstrip=True, normalized=False, special=True)])
    add_listed(folder, backend, as_they_stand=True)
    marks = [(mark, backend.token_to_id(mark)) for mark in ("<s>", "</s>")]
    backend.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=marks)
    return backend
