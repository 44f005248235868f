"""`python -m vizformer` does what `vizformer` does."""

from vizformer.cli import main

main()
