"""Who may speak, and what they may do: proofs by which two ends of a connection come to trust each other, and rules."""
