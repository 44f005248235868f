"""What ways to tell positions do: waves, products of positions, moved pairs, effects on scores."""
