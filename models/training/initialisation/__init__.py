"""Initial weights from another model."""
