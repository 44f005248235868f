"""Which answers to what bare weights do not say a text, or a number of the author's, decides."""
