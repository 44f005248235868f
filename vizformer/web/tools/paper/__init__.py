"""The page Worked examples."""
