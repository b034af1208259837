"""Networks with their training steps, and what trains, stores and runs them."""
