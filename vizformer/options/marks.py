"""The station of marks: the ids that stand for padding, start, end and [MASK]."""

from collections.abc import Iterator
from dataclasses import dataclass

from vizformer.messages import N_, Message
from vizformer.options.common import CommonOptions


@dataclass(frozen=True, kw_only=True)
class MarkOptions(CommonOptions):
    """Which ids are marks, and how writing begins and ends. No number of a forward depends on them.

    Attributes:
        pad_id, bos_id, eos_id, mask_id: the ids of padding, start, end and [MASK], where the model has them.
        decoder_start_id: what a decoder behind an encoder begins with where that is not bos_id (T5 and Marian: padding;
            BART: the end mark).
        forced_bos_id: what always comes after that, as the first token of its own (BART: the start mark).
        never_pad: the padding is never generated, however high its logit (Marian, whose decoder begins with it).
    """

    pad_id: int | None = None
    bos_id: int | None = None
    eos_id: int | None = None
    mask_id: int | None = None
    decoder_start_id: int | None = None
    forced_bos_id: int | None = None
    never_pad: bool = False

    @property
    def start_ids(self) -> tuple[int, ...]:
        """The first ids of a decoder behind an encoder: decoder_start_id or bos_id, then forced_bos_id."""
        start = self.bos_id if self.decoder_start_id is None else self.decoder_start_id
        return tuple(id for id in (start, self.forced_bos_id) if id is not None)

    @property
    def never_written(self) -> int | None:
        """The id that is never generated; None if every id may be.

        It still has a probability: P is the softmax of all logits, everywhere. No list of candidates shows it.
        """
        return self.pad_id if self.never_pad else None

    def rules(self) -> Iterator[Message]:
        if self.never_pad and self.pad_id is None:
            yield N_("never_pad=True: there is no padding to leave out, give pad_id")
        for name in MarkOptions.__annotations__:
            value = getattr(self, name)
            if name.endswith("_id") and value is not None and not 0 <= value < self.vocab_size:
                yield N_(
                    "{name}={value}: must be a token id, 0 to {last}", name=name, value=value, last=self.vocab_size - 1
                )

    def details(self) -> Iterator[Message]:
        if self.never_pad:
            yield N_("the padding is never generated, but has its share in every probability")
