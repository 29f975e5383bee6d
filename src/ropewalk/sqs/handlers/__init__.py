"""One module per action: what it takes, what it answers, and what it does."""
