"""Stage 4: scores the speech of stage 3, and writes a page of results."""
