"""The path: twelve stations of one picture each, about the reader's own sentence."""
