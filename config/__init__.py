"""The typed configuration tree and its JSON defaults."""
