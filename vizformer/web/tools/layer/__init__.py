"""The page A layer by hand."""
