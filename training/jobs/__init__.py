"""Training jobs: what to train, where it runs, how it goes.

One protocol (`backend.py`) with three implementations: a process on this machine (`local/`), a
Kubernetes Job and a Kubeflow TrainJob (`cluster/`).
"""
