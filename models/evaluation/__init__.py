"""Stage 4: scores of what stage 3 wrote, and the page that shows them."""
