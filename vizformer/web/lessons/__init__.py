"""The lessons, a folder each: one file per laboratory, and `computed`, what they compute once for everybody."""
