"""Acoustic models: phones to mel. One package or module per model; its name is the model's name."""
