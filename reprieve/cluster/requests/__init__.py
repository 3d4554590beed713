"""What a request says: its subject, query parameters, accepted forms, and body. Nothing is looked up."""
