"""How good speech is: metrics and checks of single utterances, and what they rest on."""
