"""Programs for the maintenance of the repository. They are not part of the distribution."""
