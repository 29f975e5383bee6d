"""Who may speak: the proofs by which the two ends of a connection come to trust each other."""
