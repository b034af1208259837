"""Speech with its text, recognisers, and the user's own models."""
