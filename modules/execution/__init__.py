"""How networks run fast: packed weights, compiled graphs, windows, convolutions on CPUs."""
