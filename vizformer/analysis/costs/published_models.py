"""Published models: which preset they are, how large their authors say they are, and on how much text they were trained."""

from dataclasses import dataclass

from vizformer.config import ModelConfig


@dataclass(frozen=True)
class Published:
    """A model of the literature.

    Attributes:
        preset: a key of `vizformer.presets.PRESETS`.
        parameters: what its authors print, rounded as they do.
        where: the table, section or page on which they do.
        tokens: on how many tokens it was trained, where that is published; of an encoder-decoder those of one stack.
    """

    preset: str
    name: str
    parameters: float
    where: str
    tokens: float | None = None

    @property
    def config(self) -> ModelConfig:
        return ModelConfig.preset(self.preset)


_VASWANI = "Vaswani et al. 2017, arXiv:1706.03762v7, Table 3"
_DEVLIN = "Devlin et al. 2018, arXiv:1810.04805v2, section 3"
_GPT2 = "github.com/openai/gpt-2"  # (Table 2 of the paper prints 117M, 345M, 762M and 1542M)

PUBLISHED: tuple[Published, ...] = (
    # 100,000 steps of about 25,000 source and 25,000 target tokens (sections 5.1 and 5.2); the big one 300,000
    Published("transformer-base", "Transformer base", 65e6, _VASWANI, 2.5e9),
    Published("transformer-big", "Transformer big", 213e6, _VASWANI, 7.5e9),
    # 1,000,000 steps of 128,000 tokens (appendix A.2)
    Published("bert-base", "BERT base", 110e6, _DEVLIN, 128e9),
    Published("bert-large", "BERT large", 340e6, _DEVLIN, 128e9),
    Published("gpt2-small", "GPT-2 small", 124e6, _GPT2),
    Published("gpt2-medium", "GPT-2 medium", 355e6, _GPT2),
    Published("gpt2-large", "GPT-2 large", 774e6, _GPT2),
    Published("gpt2-xl", "GPT-2 XL", 1558e6, _GPT2),
    Published("gpt3-175b", "GPT-3", 175.0e9, "Brown et al. 2020, arXiv:2005.14165v4, Table 2.1", 300e9),
    Published("t5-base", "T5 base", 220e6, "Raffel et al. 2019, arXiv:1910.10683v4, section 3.1.1", 2.0**35),
    Published("bart-large", "BART large", 400e6, "github.com/facebookresearch/fairseq, examples/bart"),
    Published("llama-7b", "LLaMA 7B", 6.7e9, "Touvron et al. 2023, arXiv:2302.13971v1, Table 2", 1.0e12),
    Published("llama2-70b", "Llama 2 70B", 70e9, "Touvron et al. 2023, arXiv:2307.09288v2, Table 1", 2.0e12),
    Published("mistral-7b", "Mistral 7B", 7.3e9, "mistral.ai, announcement of 27 September 2023"),
)
