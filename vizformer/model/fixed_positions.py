"""The tables of positions that follow from the options alone and are therefore not saved with the weights."""

from torch import Tensor

from vizformer.config import ModelConfig
from vizformer.model.positions import alibi_slopes, rope_frequencies, rotation, sinusoidal_encoding


def position_tables(config: ModelConfig) -> dict[str, Tensor]:
    """The tables by the names of their buffers; empty if positions are learned or if there are none."""
    if config.positions == "sinusoidal":
        return {"position_encoding": sinusoidal_encoding(config.max_positions, config.d_model, config.sinusoids)}
    if config.positions == "rope":
        table = rotation(config.max_positions, rope_frequencies(config))
        return {"rope_cos": table.cos, "rope_sin": table.sin}
    if config.positions == "alibi":
        return {"alibi_slopes": alibi_slopes(config.n_heads)}
    return {}
