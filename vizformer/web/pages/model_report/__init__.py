"""The page Model report, where models from elsewhere are opened."""
