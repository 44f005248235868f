"""Folders in Hugging Face layout: config.json, weights and a tokenizer; one short file per family."""
