"""Acoustic models: phones to mel. One module per model; the file name is the model's name."""
