"""How networks run at synthesis: packed weights, compiled graphs, windows of a long input."""
