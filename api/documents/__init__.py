"""The OpenAPI document: what FastAPI cannot see of requests and answers, with examples."""
