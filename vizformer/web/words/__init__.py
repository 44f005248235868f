"""What a reader reads: translation, names of places and tokens, errors in one sentence."""
