"""What an answer is made of: logits split into terms, layer by layer, and by gradients."""
