"""The address of the API server, and how a client authenticates: kubeconfig files, service accounts, exec plugins."""
