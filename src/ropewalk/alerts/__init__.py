"""What should wake somebody: rules over metrics, declared once, and what is made of them.

    expressions.py     the few forms that a rule is made of
    rules.py           what a rule is: a condition, how long it must hold, how bad that is, and what to do
    declared.py        every rule
    promql.py, rule_file.py   the same rules for Prometheus
    boards.py, grafana.py     boards for Grafana
    evaluation.py, history.py, standing.py   the same rules without Prometheus: what holds, and since when
    silences.py, notices.py   who is told of it

Invariants
    A rule means the same to Prometheus and here: on the same samples both say the same.
    Nothing here reads a clock, a file or a socket.
"""
