"""How the service does against others, and against twice what it can do.

Servers run one at a time, each in a process of its own on one core; the load comes from a process
on another core. Opponents get the same model, the same compiled code and the same core. LitServe
and BentoML live in environments of their own; where those are missing their figures are left out,
and it is said how to build them.

    python -m benchmarks.serving [--quick] [--json] [--only serving.overload_in_time …]
"""
