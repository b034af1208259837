"""Stage 4: what is scored, beside what, and what comes of it. The way in is `evaluation.py`."""
