"""One seed from empty disks to a verdict, in four sizes.

outcome     what became of a seed, whatever was run with it
node        one whole node, its clients, and trouble
cluster     several whole nodes
eos         transactions and groups on these; stands on `cluster`
cores       clusters of cores on a bare event queue: thousands of seeds in the time of one of the others
"""
