"""Every flag of the recipes and of their stages, once: table, parsers and rules between flags."""
