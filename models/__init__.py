"""Networks with their training steps, and what trains, stores, uses and scores them."""
