"""Where a client connects to: address, TLS files, proxy. `extender.client.credentials` reads kubeconfigs."""
