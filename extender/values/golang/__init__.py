"""What Go prints and reads: quoting, JSON, YAML, times, durations, int64, errors about fields, types of documents.

Upstream's texts come out of Go's standard library and of apimachinery. Whatever has to print or refuse as they do calls
this package, so that each of their rules is written once. It imports nothing else of ours.
"""
