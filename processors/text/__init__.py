"""From written text to phones and pauses."""
