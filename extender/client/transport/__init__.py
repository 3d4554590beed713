"""HTTP/1.1 connections to the API server, and the bytes that go over them."""
