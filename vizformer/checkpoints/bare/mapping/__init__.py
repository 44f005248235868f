"""Hand-written models whose tensors get their roles by hand: a mapping applied, proposed, offered to choose from."""
