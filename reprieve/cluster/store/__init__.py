"""The objects and their history: how they are kept, selected, listed and watched. No rules of the API here."""
