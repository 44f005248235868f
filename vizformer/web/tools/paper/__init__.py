"""The page Attention on paper."""
