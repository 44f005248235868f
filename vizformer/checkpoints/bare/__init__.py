"""Bare weights, without a config.json that says what they are; one file per layout of names."""
