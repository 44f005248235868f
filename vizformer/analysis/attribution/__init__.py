"""What an answer is made of: logits split into terms, layer by layer, by gradients, and the findings told in words."""
