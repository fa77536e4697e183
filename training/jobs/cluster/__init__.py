"""Jobs in a Kubernetes cluster, as Jobs or as Kubeflow TrainJobs.

Needs the extra `kubernetes`; its client takes a while to import, so this package is imported only
when a cluster is asked for.
"""
