"""The acoustic model on passages of text: mels, and other attempts where attention fails."""
