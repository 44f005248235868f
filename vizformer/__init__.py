"""VizFormer shows every number inside a Transformer, for the sentence you typed, and proves each one.

    import vizformer as vf
    checkpoint = vf.load("zh-en")
    trace = checkpoint.trace("我有一只猫。")

Names are handed out on first use (PEP 562), so that `import vizformer.figures` loads no torch and the
app paints its frame before torch is there.
"""

from typing import TYPE_CHECKING

from vizformer import lazy

__version__ = "0.2.0"

if TYPE_CHECKING:
    from vizformer import analysis as analysis
    from vizformer import components as components
    from vizformer import errors as errors
    from vizformer import exercises as exercises
    from vizformer import explain as explain
    from vizformer import figures as figures
    from vizformer.attention_view import view as view
    from vizformer.checkpoints import load as load
    from vizformer.checkpoints.recorded.wrapping import wrap as wrap
    from vizformer.config import ModelConfig as ModelConfig
    from vizformer.exercises.path import exercise as exercise
    from vizformer.model import Trace as Trace
    from vizformer.model import Transformer as Transformer
    from vizformer.model.trace_file import open_trace as open_trace
    from vizformer.model.trace_file import save_trace as save_trace
    from vizformer.pieces import open_image as open_image
    from vizformer.recorder import HeadEdit as HeadEdit
    from vizformer.recorder import StreamEdit as StreamEdit
    from vizformer.recorder import record as record
    from vizformer.recorder import recording as recording

__getattr__, __dir__, __all__ = lazy.names(__name__, __file__)
__all__ += ["__version__"]
