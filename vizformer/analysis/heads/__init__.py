"""What the heads of one trace do: their maps, measures, scores, look-ups, and the questions that they answer."""
