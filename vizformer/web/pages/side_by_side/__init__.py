"""The page Side by side."""
