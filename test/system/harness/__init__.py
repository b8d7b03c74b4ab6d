"""Brings up a Kubernetes cluster of real programs on made-up machines, inside the sandbox."""
