"""The harness of the system tests: real Kubernetes programs on made-up machines."""
