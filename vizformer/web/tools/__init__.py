"""The tools, a folder each: what their pages show, and `computed`, what they compute once for everybody."""
