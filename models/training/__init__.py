"""Stage 2: the one trainer, its data, its optimizers, its validation."""
