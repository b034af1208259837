"""Acoustic models: phones to mel. One room or file per model; its name is the model's name."""
