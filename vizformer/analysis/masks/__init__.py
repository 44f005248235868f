"""What masks change: runs under other masks, leakage, padding, and the usual mistakes."""
