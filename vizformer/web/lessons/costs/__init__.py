"""The laboratories of lesson 11, Costs, variants, results."""
