"""What happens in one forward? What the model expects, and the numbers of the pictures that tell it."""
