"""The page Where does the answer come from?: logit lens, terms of a logit, attributions of the input, and a scan."""
