"""The lessons, a folder each: one file per laboratory, and `computations`, what they compute once for everybody."""
