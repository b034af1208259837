"""Results for people: names of their files, plots, samples during training."""
