"""The recent attempts and preemptions, kept within bounds; reporting changes no decision and costs next to nothing."""
