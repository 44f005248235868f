"""What several pages share: the boxes that choose, steps and proofs, the frame of a lesson."""
