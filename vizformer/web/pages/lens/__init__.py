"""The page Where does the answer come from?: logit lens, terms of a logit, and attributions of the input."""
