"""Where the API server is, and how a client proves who it is: kubeconfig files, service accounts, exec plugins, TLS, proxies."""
