"""What could be wrong with a cluster, or surprise: facts that every node was asked for, and a table of rules over them.

`collecting` asks, `facts` is what came of it, and each rule looks at facts alone: it can be tried with facts that were made up. The page
docs/reference/doctor.md is written from the table.
"""
