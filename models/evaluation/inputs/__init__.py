"""What stage 4 scores: systems, the references of their utterances, and checks before the work."""
