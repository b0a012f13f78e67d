"""How stores of earlier releases become those of this one, one step a file."""
