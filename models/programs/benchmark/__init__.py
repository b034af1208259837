"""Speed of training and synthesis: what is measured, how, and the report."""
