"""What training does: gradients, dropout, small trainings and what they come to."""
