"""Online learning: one example at a time, forgetting, active learning."""
