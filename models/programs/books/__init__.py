"""Books: files of text to chapters, and chapters to sound."""
