"""One attention map for a paper: vector graphics with a caption, and the numbers beside it.

PNG and PDF need one package more: pip install "vizformer[paper]".
"""

import tempfile
from pathlib import Path

import vizformer as vf
from vizformer.figures import files

OUT = Path(tempfile.mkdtemp())  # or your paper's folder

checkpoint = vf.load("zh-en")
trace = checkpoint.trace("我有一只猫。")
site, head = "decoder.2.cross", 0

# %% The figure

record = trace[site]
pattern, reasons = record.pattern(head).numpy(), record.reason(head).numpy()  # why a cell is masked
figure = vf.figures.attention_heatmap(pattern, *record.tokens, reasons=reasons)
figure

# %% Its files: the picture as SVG and, where they can be made, PNG and PDF; the numbers as CSV and NPZ; Plotly's page

CAPTION = f"zh-en, {site}, head {head}: attention weights, rows are queries and sum to 1"
for kind in files.KINDS:
    if kind in ("png", "pdf") and not files.prints():
        continue
    path = OUT / f"attention.{kind}"
    path.write_bytes(files.as_file(figure, kind, caption=CAPTION))
    print(path, path.stat().st_size, "bytes")

# %% For the supplement: all heads in one HTML file, which works without a server and without a network

vf.view(trace, kind="cross").save(OUT / "all_heads.html")
