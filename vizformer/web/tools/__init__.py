"""The tools, a folder each: what their pages show, and `computations`, what they compute once for everybody."""
