"""The pages that are no lessons, a folder or a file each; `computations` is what a page computes once for everybody."""
