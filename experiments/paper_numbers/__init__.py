"""The numbers that the papers print, typed once."""
