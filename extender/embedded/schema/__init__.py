"""What the Kubernetes API types say of their fields, and reading objects by it. No rules about values here: see `validation`."""
