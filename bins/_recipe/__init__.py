"""Recipes: where they are, the stages that their flags ask for, and what to run next."""
