"""The conversations a gateway knows: their history, their budgets and their plans."""
